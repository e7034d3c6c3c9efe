"""Zones: who looks after which part of a space.

Layers: ``tree`` (the splits that make zones of a space, and their names), ``zone_map`` (who owns which zone, with
fencing numbers, as a value that grows by versions), ``balance`` (who takes what when machines come, go, or have
too much to do), ``records`` (zones in the directory), ``map_walk`` (the whole map there). All pure. Start at
``tree``.
"""
