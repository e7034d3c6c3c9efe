"""Publishing what appears in a folder, for as long as it takes: the daemon may be away, and come back."""

from __future__ import annotations

import sys
import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError, TryAgain
from peer.home import Conversation, ask_one
from peer.output import emit, visible
from peer.publication import key_of, shown_name
from peer.watched_folder import Settling, Unusable, WatchedFolder, read_document_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from peer.watched_folder import Seen

_LOOK_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_MAY_PUBLISH: Final = {"source", "publisher"}


class Watching:
    """Publishes the files of a folder through the daemon of a home."""

    def __init__(
        self, home: Path, folder: WatchedFolder, tell: Callable[[dict[str, Any]], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._home, self._folder, self._tell, self._sleep = home, folder, tell, sleep

    def run(self) -> None:
        """Look again and again, until interrupted."""
        while True:
            self.look(time.time())
            self._sleep(_LOOK_S)

    def look(self, now: float) -> int:
        """Publish what is complete now, in the order of names; return how many files that were."""
        found = self._folder.ready(now)
        for file in found:
            self._publish(file)
        return len(found)

    def _publish(self, file: Seen) -> None:
        path = self._folder.claim(file)
        if path is None:
            return
        try:
            told = self._answered(file.name, read_document_file(path))
        except (Unusable, CommandError) as exc:
            self._folder.refused(file, str(exc))
            self._tell({"refused": file.name, "reason": str(exc)})
            return
        self._folder.published(file, told["number"])
        self._tell({"document": file.name, **told})

    def _answered(self, name: str, body: bytes) -> dict[str, Any]:
        """Publish, again and again while the daemon or the source is away."""
        key, pause = key_of(name, body), _LOOK_S
        while True:
            try:
                with Conversation(self._home, is_quiet=True) as daemon:
                    return daemon.one("publish", name=shown_name(name), key=key, body=b64encode(body).decode())
            except TryAgain as exc:
                if pause == _LOOK_S:
                    self._tell({"waiting": str(exc)})
                self._sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)


def watch(home: Path, path: Path, *, settle_s: float, leaves: bool, as_json: bool) -> None:
    """Publish what appears in a folder until interrupted; ``CommandError`` if this machine cannot publish."""
    if not _MAY_PUBLISH & set(ask_one(home, "status")["roles"]):
        raise CommandError("this machine is no publisher; invite it with --role publisher")

    def tell(one: dict[str, Any]) -> None:
        if as_json:
            emit(one)
        elif "document" in one:
            sys.stdout.write(f"{one['number']}\t{visible(one['document'])}\n")
        else:
            reason = one.get("reason") or one["waiting"]
            what = f"refused {visible(one['refused'])}" if "refused" in one else "waiting"
            sys.stderr.write(f"distributary: {what}: {' '.join(reason.split())}\n")
        sys.stdout.flush()

    folder = WatchedFolder(path, Settling(settle_s), leaves=leaves)
    try:
        Watching(home, folder, tell).run()
    finally:
        folder.close()
