"""What survives a crash: the source's log and a peer's results, each one SQLite file.

Layers, bottom up: ``errors``, ``store_file`` (private files), ``database`` (transactions, readers, formats) and
``budget``. The source: ``log_values``, ``source_schema``, ``source_catalog`` (subscriptions, sites,
configurations), ``appending``, ``source_log``, ``restoring``. A peer: ``result_values``, ``result_schema``,
``committing``, ``result_trimming``, ``result_store``. Start reading at ``source_log`` and ``result_store``.

Everything is synchronous: a commit takes as long as the disk. Each store has one writer at a time, in whatever
thread; readers may be in any number of other threads. To commit for many at the price of one, the caller collects:
one call is one transaction. Nothing trims itself: the writer calls ``trim`` now and then.
"""

from peer.storage.errors import (
    BrokenStore,
    DiskFull,
    LocalFrontierWentBack,
    LocalMisuse,
    NewerStore,
    RemoteStaleGeneration,
    StorageError,
    Unstorable,
)
from peer.storage.log_values import (
    Appended,
    CatalogEntry,
    Configuration,
    Extent,
    Missing,
    NewDocument,
    NewEntry,
    NewSubscription,
    Refused,
    Retention,
    SiteRecord,
    Start,
    StoredDocument,
    Version,
    Withdrawal,
)
from peer.storage.restoring import restore
from peer.storage.result_store import ResultStore
from peer.storage.result_values import (
    Begin,
    Change,
    Cursor,
    Drain,
    DropCursor,
    End,
    Entry,
    Followers,
    Frontier,
    Hosted,
    Install,
    Kind,
    ResultLimits,
    Results,
    State,
    Together,
)
from peer.storage.source_log import SourceLog

__all__ = [
    "Appended",
    "Begin",
    "BrokenStore",
    "CatalogEntry",
    "Change",
    "Configuration",
    "Cursor",
    "DiskFull",
    "Drain",
    "DropCursor",
    "End",
    "Entry",
    "Extent",
    "Followers",
    "Frontier",
    "Hosted",
    "Install",
    "Kind",
    "LocalFrontierWentBack",
    "LocalMisuse",
    "Missing",
    "NewDocument",
    "NewEntry",
    "NewSubscription",
    "NewerStore",
    "Refused",
    "RemoteStaleGeneration",
    "ResultLimits",
    "ResultStore",
    "Results",
    "Retention",
    "SiteRecord",
    "SourceLog",
    "Start",
    "State",
    "StorageError",
    "StoredDocument",
    "Together",
    "Unstorable",
    "Version",
    "Withdrawal",
    "restore",
]
