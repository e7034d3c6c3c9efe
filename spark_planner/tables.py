"""The files a plan is made from: subscriptions and sites, as Parquet, CSV or plain text; and sample documents.

*Subscriptions*: columns ``pattern`` (needed), ``subscription`` (a name; default ``s1``, ``s2``, ... by row),
``site`` (default: one of its own, named after the subscription) and ``limit`` (its plan limit; default
``--max-feeds``). A file that is neither ``.parquet`` nor ``.csv`` holds a pattern per line; blank lines and
lines with ``#`` first are skipped.

*Sites*: columns ``site`` (needed), ``limit``, ``region``, ``uplink_mbit``, and ``source_rtt_ms`` of its region;
further columns ``rtt_ms:REGION`` give the round-trip time from the row's region to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from planner.problem import Network, Site
from spark_planner.errors import BadInput

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_COLUMNS: Final = ("subscription", "pattern", "site", "limit")
_MOST_DOCUMENTS: Final = 200
_BYTES_PER_MBIT: Final = 125_000
_RTT: Final = "rtt_ms:"


def read_subscriptions(path: Path, max_feeds: int | None) -> pa.Table:
    """Read subscriptions with all four columns and ``row``, where each stands in the file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = _read(path, plain=True)
    unknown = [name for name in table.column_names if name not in (*_COLUMNS, "row")]
    if unknown:
        raise BadInput(str(path), f"there is no column {unknown[0]!r}; columns are {', '.join(_COLUMNS)}")
    if "pattern" not in table.column_names:
        raise BadInput(str(path), "there is no column 'pattern'")
    if table.num_rows == 0:
        raise BadInput(str(path), "there are no subscriptions in it")
    rows = table.column("row").combine_chunks() if "row" in table.column_names else pa.array(
        range(1, table.num_rows + 1), pa.int64()
    )  # fmt: skip
    pattern = _text(table, "pattern", path)
    _refuse_empty(pattern, rows, path, "pattern")
    named = "subscription" in table.column_names
    name = (
        _text(table, "subscription", path) if named else pc.binary_join_element_wise("s", rows.cast("string"), "")
    )
    _refuse_empty(name, rows, path, "subscription")
    site = _text(table, "site", path) if "site" in table.column_names else name
    site = pc.if_else(pc.is_null(site), name, site)
    limit = _limits(table, path, rows)
    if max_feeds is not None:
        limit = pc.fill_null(limit, max_feeds)
    _refuse_twice(name, rows, path)
    return pa.table({"row": rows, "subscription": name, "pattern": pattern, "site": site, "limit": limit})


def read_sites(path: Path) -> tuple[list[Site], dict[tuple[str, str], float], dict[str, float]]:
    """Read sites, round-trip times between regions in seconds, and those from the source."""
    rows = _read(path, plain=False).to_pylist()
    if not rows or "site" not in rows[0]:
        raise BadInput(str(path), "there is no column 'site', or no row")
    sites, rtt, source = [], {}, {}
    for i, row in enumerate(rows, start=1):
        where = f"{path}: row {i}"
        region = str(row.get("region") or "")
        limit, uplink = row.get("limit"), row.get("uplink_mbit")
        _positive(limit, where, "limit", least=0)
        _positive(uplink, where, "uplink_mbit")
        if row["site"] is None:
            raise BadInput(where, "its site has no name")
        more = {} if uplink is None else {"uplink": float(uplink) * _BYTES_PER_MBIT}
        sites.append(Site(str(row["site"]), None if limit is None else int(limit), region, **more))
        if row.get("source_rtt_ms") is not None:
            _positive(row["source_rtt_ms"], where, "source_rtt_ms", least=0)
            source[region] = float(row["source_rtt_ms"]) / 1000
        for name, value in row.items():
            if name.startswith(_RTT) and value is not None:
                _positive(value, where, name, least=0)
                rtt[region, name.removeprefix(_RTT)] = float(value) / 1000
    names = [site.name for site in sites]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise BadInput(f"{path}: row {i + 1}", f"site {name} is there twice")
    return sites, rtt, source


def network_of(path: Path | None, site_names: list[str]) -> Network:
    """Make the network: from a file of sites, or of the sites that subscriptions name."""
    if path is None:
        return Network.of([Site(name) for name in site_names])
    sites, rtt, source = read_sites(path)
    return Network.of(sites, rtt, source)


def read_documents(folder: Path) -> list[bytes]:
    """Read sample documents: every ``.xml`` file of a folder, at most 200 of them evenly spread, or one file."""
    paths = sorted(folder.glob("*.xml")) if folder.is_dir() else [folder]
    if not paths:
        raise BadInput(str(folder), "there are no documents (*.xml) in it; statistics need some")
    step = -(-len(paths) // _MOST_DOCUMENTS)
    return [path.read_bytes() for path in paths[::step]]


def check_documents(folder: Path, documents: list[bytes]) -> None:
    """Parse every sample document once, to name the one that is wrong."""
    from xmlmatch import Document, DocumentError

    for i, data in enumerate(documents, start=1):
        try:
            Document.parse(data)
        except DocumentError as exc:
            raise BadInput(f"{folder}: document {i}", str(exc)) from None


def _read(path: Path, *, plain: bool) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if not path.exists():
        raise BadInput(str(path), "there is no such file")
    try:
        if path.is_dir() or path.suffix == ".parquet":
            return pyarrow.parquet.read_table(path)
        if path.suffix == ".csv" or not plain:
            return pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=True))
    except (pa.ArrowInvalid, OSError) as exc:
        raise BadInput(str(path), " ".join(str(exc).split())) from None
    try:
        lines = list(enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1))
    except UnicodeDecodeError as exc:
        raise BadInput(str(path), f"not UTF-8 at byte {exc.start}") from None
    kept = [(i, line.strip()) for i, line in lines if line.strip() and not line.lstrip().startswith("#")]
    return pa.table(
        {"row": pa.array([i for i, _ in kept], pa.int64()), "pattern": pa.array([t for _, t in kept], pa.string())}
    )


def _text(table: pa.Table, name: str, path: Path) -> Any:
    try:
        return table.column(name).cast("string").combine_chunks()
    except Exception as exc:  # pyarrow raises several kinds, by type
        raise BadInput(str(path), f"column {name!r} is not text: {exc}") from None


def _limits(table: pa.Table, path: Path, rows: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if "limit" not in table.column_names:
        return pa.nulls(table.num_rows, pa.int64())
    try:
        limit = table.column("limit").cast("int64").combine_chunks()
    except pa.ArrowInvalid:
        raise BadInput(str(path), "column 'limit' has something else than whole numbers") from None
    bad = pc.indices_nonzero(pc.fill_null(pc.less(limit, 0), False)).to_pylist()
    if bad:
        where = f"{path}: row {rows[bad[0]]}"
        raise BadInput(where, f"its limit is {limit[bad[0]]}; limits are 0 or more", len(bad) - 1)
    return limit


def _refuse_empty(column: Any, rows: Any, path: Path, name: str) -> None:
    import pyarrow.compute as pc

    bad = pc.indices_nonzero(pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True)).to_pylist()
    if bad:
        raise BadInput(f"{path}: row {rows[bad[0]]}", f"its {name} is empty", len(bad) - 1)


def _refuse_twice(name: Any, rows: Any, path: Path) -> None:
    import pyarrow.compute as pc

    if pc.count_distinct(name).as_py() == len(name):
        return
    seen: dict[str, int] = {}
    for text, row in zip(name.to_pylist(), rows.to_pylist(), strict=True):
        if text in seen:
            raise BadInput(f"{path}: row {row}", f"subscription {text} is there already, in row {seen[text]}")
        seen[text] = row


def _positive(value: object, where: str, name: str, least: float = 1e-9) -> None:
    if value is not None and not (isinstance(value, int | float) and value >= least):
        raise BadInput(where, f"its {name} is {value}; it is a number, {'0 or more' if least == 0 else 'above 0'}")
