"""The files between the source and the batch: a snapshot in, a proposal out."""

from __future__ import annotations

import base64
import csv
import json
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path

SUBSCRIPTIONS: Final = "subscriptions.csv"
SITES: Final = "sites.csv"
DOCUMENTS: Final = "documents"
_COLUMNS: Final = ("subscription", "site", "pattern", "how", "inputs", "alternatives")


def write_snapshot(found: dict[str, Any], folder: Path) -> None:
    """Write a snapshot as the files that ``distributary plan`` reads."""
    with open(folder / SUBSCRIPTIONS, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["subscription", "site", "limit", "pattern"])
        for name, pattern, site, limit in found["subscriptions"]:
            table.writerow([name, site, "" if limit is None else limit, pattern])
    with open(folder / SITES, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["site", "limit"])
        for name, limit in found["sites"]:
            table.writerow([name, "" if limit is None else limit])
    (folder / DOCUMENTS).mkdir()
    for i, body in enumerate(found["documents"]):
        (folder / DOCUMENTS / f"{i:05}.xml").write_bytes(base64.b64decode(body))


def read_rows(out: Path) -> list[dict[str, Any]]:
    """Read the proposal that a batch has left."""
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise CommandError("replanning needs more packages: pip install 'distributary[planner]'") from None
    rows = pyarrow.parquet.read_table(out / "plan.parquet", columns=list(_COLUMNS)).to_pylist()
    return [json.loads(json.dumps(row)) for row in rows]
