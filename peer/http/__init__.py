"""A small HTTP/1.1 server on localhost: metrics, publishing, and results as they arrive.

Where to start reading: ``pages`` lists what is offered, ``serving`` runs connections on trio with ``h11``. Below
it nothing waits: ``exchange`` (a request and its answer), ``routes``, ``access`` (token and Host), ``exposition``
(Prometheus' text), ``events`` (server-sent events). ``limits`` bounds everything: heads, bodies, connections, and
how long each may take.
"""
