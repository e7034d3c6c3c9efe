"""The network between peers: identity, wire frames, feeds, the DHT, CAN zones, CN and CN*, filter matching.

Nothing stands here yet. Columns will be opaque bytes to this package, and each protocol a plain class with events
in and effects out, so that daemons and the simulator run the same objects.
"""
