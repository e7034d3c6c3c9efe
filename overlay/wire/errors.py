"""What can be wrong with what arrives."""


class WireError(Exception):
    """The base of all errors of connections."""


class MalformedFrame(WireError):
    """The other side sent bytes that are no frame of ours."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed frame: {reason}")
        self.reason = reason


class FrameTooLarge(WireError):
    """We were to send a frame that the other side would not take."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"{size:,} bytes to be sent at once; the most is {most:,}")
        self.size = size


class BrokenConnection(WireError):
    """The connection cannot go on: a frame was lost, the versions do not meet, or the other side fell silent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
