"""Publishing beside what else happens in a run: by one thread in order, or by several at once."""

from __future__ import annotations

import threading
import time
from bisect import insort
from typing import TYPE_CHECKING

from scenarios.running.truth import Published

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scenarios.running.story import Story


class Publishing:
    """``publish``: publishes a document by a name, and returns its number; it may take long. What went wrong with
    it is in ``failed``."""

    def __init__(self, story: Story, publish: Callable[[str, bytes], int]) -> None:
        self._story, self._publish = story, publish
        self._turn, self._noting = threading.Lock(), threading.Lock()
        self._threads: list[threading.Thread] = []
        self.failed: list[BaseException] = []

    def begin(self, due: Iterator[tuple[float, bytes]], begun: float, at_once: int) -> None:
        """Begin to publish what comes of ``due``, with the time when it does."""
        numbered = enumerate(due)
        self._threads = [
            threading.Thread(target=self._run, args=(numbered, begun), daemon=True) for _ in range(at_once)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_under_way(self) -> bool:
        """Whether there is something left to be published."""
        return any(thread.is_alive() for thread in self._threads)

    def wait(self, seconds: float) -> None:
        """Wait for the end, for so long."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self, numbered: Iterator[tuple[int, tuple[float, bytes]]], begun: float) -> None:
        try:
            while not self.failed:
                with self._turn:
                    one = next(numbered, None)
                if one is None:
                    break
                i, (due, body) = one
                found = Published(self._publish(f"document-{i}", body), self._story.began + due - begun, body)
                with self._noting:
                    insort(self._story.documents, found, key=lambda one: one.number)
        except BaseException as exc:  # raised again by the thread of the run
            self.failed.append(exc)
        with self._noting:
            self._story.published_s = max(self._story.published_s, time.monotonic() - begun)
