"""Keeps Spark off the terminal unless something is wrong.

Three voices have to be calmed. Spark's logging gets settings of its own, from a file that the Java machine
reads as it starts, for ``setLogLevel`` comes too late for what is logged before. The Java machine writes
notices itself, which no option turns off, so its error stream passes through a filter that drops those lines
and copies everything else. And PySpark warns at every use of Arrow that it does not yet know pandas 3, which
plays no part in that.
"""

import os
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

LOG4J_SETTINGS: Final = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n%ex{short}
# A failed task reaches Python as an exception with the same text: logging it as well would only bury that.
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
# Spark announces its level for shells unless the shell's own logger has one.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
"""Log4j settings: errors only, one line each, on the error stream."""

# Java's answers to the options that Spark starts it with; the second comes from Java 24 and later.
_NOTICES: Final = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"WARNING: package sun.security.action not in java.base",
)
_PANDAS_WARNING: Final = "PySpark does not yet fully support pandas"
_STDERR: Final = 2


def without_notices(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pass on a stream without the Java machine's notices, holding back only what may still become one.

    >>> list(without_notices([b"WARNING: Using incubator", b" modules: jdk.incubator.vector\\nThe rest"]))
    [b'The rest']
    """
    held = b""
    for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        kept = b"".join(line + b"\n" for line in lines if not line.startswith(_NOTICES))
        if not any(notice.startswith(held[: len(notice)]) for notice in _NOTICES):
            kept, held = kept + held, b""
        if kept:
            yield kept
    if held and not held.startswith(_NOTICES):
        yield held


@contextmanager
def filtered_stderr() -> Iterator[None]:
    """Give processes started inside an error stream without the notices, for as long as they live.

    The stream is switched for the whole process meanwhile; what other threads write to it comes through too.
    """
    source, sink = os.pipe()
    terminal = os.dup(_STDERR)
    os.dup2(sink, _STDERR)
    os.close(sink)
    threading.Thread(target=_copy, args=(source, terminal), name="spark-stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(terminal, _STDERR)


def _copy(source: int, terminal: int) -> None:
    """Copy ``source`` to ``terminal`` until its last writer is gone, then close both."""
    try:
        for chunk in without_notices(iter(lambda: os.read(source, 65536), b"")):
            os.write(terminal, chunk)
    finally:
        os.close(source)
        os.close(terminal)


def ignore_pandas_warning() -> None:
    """Keep PySpark's remark on pandas 3 from being shown in this process."""
    warnings.filterwarnings("ignore", message=_PANDAS_WARNING, category=FutureWarning)
