"""Webhooks: results posted to a URL as they arrive, in document order, until the receiver has taken them.

Where to start reading: ``delivering`` has a task per webhook, which reads from the store behind a cursor of its
own, posts a batch, tries again for as long as it takes, and moves the cursor. ``posting`` is one POST;
``batching``, ``signing`` and ``waiting`` are what it says, how it proves who it is, and how long it waits;
``hooks`` is what is kept of webhooks.
"""
