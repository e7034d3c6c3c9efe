"""Feeds: how results travel from one subscription to another, exactly once, without the network.

Layers: ``items`` (what is sent for a document), ``serving`` (the sender's end of one feed), ``receiving`` (the
receiver's end), ``intake`` (all inputs of one subscription, joined by document). All are plain objects: frames in,
frames and items out. Data are opaque bytes here. Start at ``receiving``.
"""
