"""How the source decides who feeds whom while subscriptions come and go; no sockets, disks or clocks.

Layers: ``entries`` (what the catalog says of a subscription), ``steady_plan`` (a live plan that starts empty, is
made again from stored feeds, and never changes a place among equals), ``fallbacks`` (what a subscription falls
back to), ``issuing`` (configurations and their versions), ``proposal`` and ``checking`` (a full plan as it is
proposed, and what is wrong with it), ``levels`` (what is shown), ``steering`` (all of it together). Start there.
"""
