"""The content-driven network (CN): a message reaches the subscriptions that it satisfies, wherever they are.

Layers: ``frames`` (what is said), ``routing`` (where a message goes next, in two ways), ``table`` (the
subscriptions of a zone, and the plain matcher), ``tasks`` (a message on its way through a machine), ``node`` (a
machine's part), ``origin`` (the source's part: the catalog of zones and subscriptions, and the messages under
way), ``journal`` (what it must not forget, the entries of the source's log among it), ``inbox`` (the subscriber's
part). All are plain objects: frames and a clock in, frames out. Start at
``node``.
"""
