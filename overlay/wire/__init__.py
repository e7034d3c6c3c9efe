"""What two hosts say to each other over one connection, without the sockets.

Layers, bottom up: ``frames`` (what is said, as bytes), ``outbox`` (in which order it leaves), ``connection`` (the
greeting, the numbering that notices a lost frame, keep-alive). ``peer`` moves the bytes. Start at ``connection``.
"""
