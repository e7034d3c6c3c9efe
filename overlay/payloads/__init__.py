"""CN*: bulky attributes of messages cross a link once (``payload``, ``repository``, ``directory``, ``desk``).

Layers: ``payload`` (which attributes travel as one, and their hash), ``repository`` (payloads that were seen, up
to a cap), ``directory`` (what has crossed which link), ``desk`` (what a node sends along, and what it must fetch).
All of it is soft state: forgetting costs bytes, never a payload. Start at ``desk``.
"""
