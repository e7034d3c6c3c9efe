"""What a run has left behind: processes, by a word in their environment or command, and files."""

import time
from pathlib import Path


def processes_with(word):
    """List the commands of processes that have a word in their command or environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
        except OSError:
            continue  # it has just ended, or is another user's
        if word.encode() in command + environment:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def gone(word, patience_s=60.0):
    """Wait until no process has a word; return those that still do."""
    end = time.monotonic() + patience_s
    while (left := processes_with(word)) and time.monotonic() < end:
        time.sleep(0.1)
    return left
