"""What one machine does with its subscriptions, without sockets, disks or clocks.

Layers: ``results`` (results as bytes: encoding, cutting for a link, joining), ``configuration`` (how a
subscription is to be fed, as the source says it), ``outlet`` (feeding others), ``feeding`` (being fed: attempts,
failover), ``host`` (all subscriptions of a machine). The daemon and the simulator drive the same objects. Start
at ``host``.
"""
