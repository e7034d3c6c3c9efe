"""Workloads and whole-network runs, driven from outside the other packages.

What stands here now: ``auction_values`` and ``auction_schema`` (XMark's schema as a table), ``auction_documents``
(documents from a seed), ``subscriptions`` (random patterns over the schema), ``presets`` (the papers' workloads)
and ``commands/`` (``demo``, ``generate``). Multi-host scenarios, the virtual-time simulator and the papers'
experiments come here too. Start reading at ``presets``.
"""
