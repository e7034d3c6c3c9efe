"""Hosts of a scenario: where its daemons run, and what lies between them.

On loopback all run on this machine as it is; namespaces give each host a network of its own, joined by a switch
that delays, loses and cuts.
"""
