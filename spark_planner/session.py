"""Starts Spark: on loopback, quietly, with a Java that is known to work."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_planner.errors import JavaMissing, PySparkMissing
from spark_planner.java import find_java
from spark_planner.quiet import LOG4J_SETTINGS, filtered_stderr, ignore_pandas_warning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK: Final = "127.0.0.1"


def spark_session(
    app_name: str,
    *,
    master: str = "local[2]",
    driver_memory: str = "4g",
    show_progress: bool = False,
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Return a session that listens on 127.0.0.1 only and prints errors only; the caller stops it.

    Starting takes some seconds, for it starts a Java machine, which a later session of the same process uses
    again, with the memory that the first was given. In ``local[N]`` all of Spark lives in the driver:
    ``driver_memory`` then bounds what shuffles and caches hold, while NumPy and Numba work in Python
    processes beside it; 4g of a 24 GiB machine leaves them most. More of it spills less, but takes from them.
    ``settings`` are further Spark settings and win over ours.

    Raises :class:`PySparkMissing` or :class:`JavaMissing`, before anything is started.
    """
    session_class = _import_session_class()
    java = find_java()
    if java is None:
        raise JavaMissing
    ignore_pandas_warning()
    chosen = {
        "spark.app.name": app_name,
        "spark.master": master,
        "spark.driver.memory": driver_memory,
        "spark.ui.showConsoleProgress": str(show_progress).lower(),
        **_fixed_settings(),
        **(settings or {}),
    }
    with _environment(_launch_environment(java.path)), filtered_stderr():
        return session_class.builder.config(map=dict(chosen)).getOrCreate()


def _import_session_class() -> "type[SparkSession]":
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as exc:
        raise PySparkMissing from exc
    return SparkSession


def _fixed_settings() -> dict[str, str]:
    """Return the settings that every session has, whatever it is for."""
    logging = f'"-Dlog4j2.configurationFile={_log4j_file().as_uri()}"'
    settings = {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": logging,
        "spark.executor.extraJavaOptions": logging,
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    # Without the cache that the driver filled, every worker compiles every kernel again, all at once.
    if os.environ.get("NUMBA_CACHE_DIR"):
        settings["spark.executorEnv.NUMBA_CACHE_DIR"] = os.environ["NUMBA_CACHE_DIR"]
    return settings


def _launch_environment(java_home: Path) -> dict[str, str]:
    """Return the variables that the Java machine and its workers must start with."""
    return {
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": sys.executable,  # workers need the packages installed here
        "SPARK_LOCAL_IP": LOOPBACK,  # for what binds before the driver's settings are read
    }


def _log4j_file() -> Path:
    """Write the logging settings where the Java machine can read them until this process ends."""
    folder = tempfile.mkdtemp(prefix="distributary-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder, "log4j2.properties")
    file.write_text(LOG4J_SETTINGS, encoding="utf-8")
    return file


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes started inside, and put back what was there."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
