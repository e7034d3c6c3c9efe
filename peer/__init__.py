"""The program that runs on every machine of the network, and its command line.

What stands here now: ``cli`` (finds and runs commands), ``commands/`` (``match``, ``explain``), ``arguments``
(what several commands read alike) and ``errors``. The daemon, its roles, storage, dashboard and Python client
come into this package too; they hold the I/O, the packages below hold the decisions. Start reading at ``cli``.
"""
