"""Daemons as processes, killed with -9 again and again while everything goes on; then everything is compared.

Layers: ``ledger`` (what was acknowledged, and what follows from it by direct matching), ``moments`` (when
something is about to happen, so that a kill can be aimed at it), ``load`` (publishing, subscribing, unsubscribing,
other plans), ``killing`` (who is killed when, and started again), ``soaking`` (all of it).
``python -m scenarios.kills`` runs it.
"""
