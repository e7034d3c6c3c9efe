"""The daemon: hosts and the source on real sockets, disks and clocks (trio).

Layers: ``links`` (connections between machines over TLS), ``questions`` (asking a machine something and waiting
for its answer), ``committing`` (group commit), ``control`` (the socket that the command line talks to),
``peer_daemon``, ``source_daemon``, ``enrolling`` (the listener where machines join). Start at ``peer_daemon``.
"""
