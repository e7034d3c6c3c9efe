"""TLS links in memory: two contexts shake hands and exchange a word each way."""

import ssl


class Link:
    """A client and a server, whose bytes are moved by hand; ``ssl.SSLError`` where one of them gives up."""

    def __init__(self, client, server):
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(to_client, to_server)
        self.server = server.wrap_bio(to_server, to_client, server_side=True)
        self._until([self.client.do_handshake, self.server.do_handshake])
        # In TLS 1.3 the client is done before the server has judged its certificate: a word each way shows.
        assert self.send(self.client, self.server, b"ping") == b"ping"
        assert self.send(self.server, self.client, b"pong") == b"pong"

    def send(self, sender, receiver, data):
        sender.write(data)
        return receiver.read(len(data) or 1)

    @staticmethod
    def _until(steps):
        """Run both sides by turns until each has finished; the first error of either is the outcome."""
        waiting = list(steps)
        for _ in range(20):
            for step in list(waiting):
                try:
                    step()
                    waiting.remove(step)
                except ssl.SSLWantReadError:
                    pass
            if not waiting:
                return
        raise AssertionError("the handshake does not end")

    def leaf_seen_by_client(self):
        return self.client.getpeercert(binary_form=True)

    def leaf_seen_by_server(self):
        return self.server.getpeercert(binary_form=True)
