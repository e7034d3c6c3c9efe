"""Whole networks in virtual time: the objects that daemons run on trio, under a clock and a network of ours.

One seed is one run, bit for bit. Where to start reading: ``world`` puts machines together and lets things happen,
``checks`` says what must hold, ``drawn`` draws a run from its seed. ``nodes`` carries the messages of any other
protocol, under the same ``agenda`` and links.
"""
