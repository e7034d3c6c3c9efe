"""The commands of ``distributary`` that need nothing beyond this package.

A command is a module with ``SUMMARY``, ``configure(parser)`` and ``run(arguments) -> int``, or one ``run`` per
sub-command that ``configure`` sets. It is named in pyproject.toml under ``distributary.commands``. Its top level
imports nothing heavy: ``--help`` loads them all.
"""
