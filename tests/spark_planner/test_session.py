"""Real Spark: a small program in a process of its own, in local mode and then with two executors."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spark_planner import session
from spark_planner.errors import JavaMissing, PySparkMissing
from spark_planner.quiet import without_notices
from spark_planner.session import spark_session

PROGRAM = """
import json, os
from spark_planner import spark_session

def squares(batches):
    import numpy as np
    import pyarrow as pa
    for batch in batches:
        values = np.square(batch.column("id").to_numpy())
        yield pa.RecordBatch.from_arrays([pa.array(values)], names=["square"])

def environment(batches):
    import sys
    import pyarrow as pa
    for batch in batches:
        told = json.dumps([sys.executable, os.environ.get("NUMBA_CACHE_DIR")])
        yield pa.RecordBatch.from_arrays([pa.array([told])], names=["told"])

def failing(batches):
    raise ValueError("a mistake in a job")

def sums(batches):
    import numpy as np
    import pyarrow as pa
    total = sum(int(np.sum(batch.column("id").to_numpy())) for batch in batches)
    yield pa.RecordBatch.from_pydict({"total": [total]})

spark = spark_session("test")

try:
    spark.range(2).mapInArrow(failing, "id long").count()
    raised = ""
except Exception as exc:
    raised = str(exc)
rows = spark.range(1000).mapInArrow(squares, "square long").collect()
worker = json.loads(spark.range(1).mapInArrow(environment, "told string").first().told)
told = {
    "sum": sum(row.square for row in rows),
    "conf": dict(spark.sparkContext.getConf().getAll()),
    "arrow": spark.conf.get("spark.sql.execution.arrow.pyspark.enabled"),
    "ui": spark.sparkContext.uiWebUrl,
    "python": worker[0],
    "cache": worker[1],
    "raised": raised,
    "left_in_environment": [name for name in ("PYSPARK_PYTHON", "SPARK_LOCAL_IP") if name in os.environ],
}
spark.stop()

spark = spark_session("test-cluster", master="local-cluster[2,1,1024]")
rows = spark.range(0, 1000, 1, 4).mapInArrow(sums, "total long").collect()
told["cluster"] = {
    "master": spark.sparkContext.master,
    "bind": spark.sparkContext.getConf().get("spark.driver.bindAddress"),
    "totals": [row.total for row in rows],
}
spark.stop()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def executor_logs():
    """A function that returns the folders of logs made since, one per application; they are removed again.

    Spark's worker insists on a place inside PySpark's own folder.
    """
    logs = Path(importlib.util.find_spec("pyspark").origin).parent / "work"
    before = set(logs.glob("app-*"))

    def made():
        return set(logs.glob("app-*")) - before

    yield made
    for folder in made():
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def ran(tmp_path_factory, executor_logs):
    """The outcome of a small program that uses Spark, run once in an empty folder."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environ["NUMBA_CACHE_DIR"] = str(tmp_path_factory.mktemp("numba"))
    environ["PYTHONPATH"] = str(Path(session.__file__).parent.parent)
    folder = tmp_path_factory.mktemp("empty")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    return done, environ, folder


@pytest.fixture(scope="module")
def told(ran):
    done, _, _ = ran
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_job_computes_with_numpy_on_arrow_batches(told):
    assert told["sum"] == sum(n * n for n in range(1000))
    assert told["arrow"] == "true"


def test_a_session_listens_on_loopback_only_and_serves_no_pages(told):
    assert told["conf"]["spark.driver.host"] == "127.0.0.1"
    assert told["conf"]["spark.driver.bindAddress"] == "127.0.0.1"
    assert told["ui"] is None


def test_workers_use_this_python_and_numbas_cache(ran, told):
    _, environ, _ = ran
    assert Path(told["python"]).samefile(sys.executable)
    assert told["cache"] == environ["NUMBA_CACHE_DIR"]
    # Workers on this machine inherit the variable; those on others get it through this setting alone.
    assert told["conf"]["spark.executorEnv.NUMBA_CACHE_DIR"] == environ["NUMBA_CACHE_DIR"]


def test_a_session_stays_quiet_even_when_a_job_fails(ran):
    done, _, _ = ran
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_a_failed_job_raises_with_the_mistake_in_its_message(told):
    assert "a mistake in a job" in told["raised"]


def test_a_session_leaves_nothing_behind(ran, told):
    _, _, folder = ran
    assert list(folder.iterdir()) == []
    assert told["left_in_environment"] == []
    options = told["conf"]["spark.driver.extraJavaOptions"]
    settings = Path(options.strip('"').partition("file://")[2])
    assert settings.name == "log4j2.properties"
    assert not settings.exists()


def test_two_executors_in_processes_of_their_own_share_a_job(told, executor_logs):
    assert told["cluster"]["master"] == "local-cluster[2,1,1024]"
    assert told["cluster"]["bind"] == "127.0.0.1"
    assert len(told["cluster"]["totals"]) == 4
    assert sum(told["cluster"]["totals"]) == sum(range(1000))
    (application,) = executor_logs()
    assert sorted(folder.name for folder in application.iterdir()) == ["0", "1"]


def test_a_missing_java_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setattr(session, "find_java", lambda: None)
    with pytest.raises(JavaMissing):
        spark_session("never")


def test_a_missing_pyspark_is_told_before_anything_starts(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(PySparkMissing, match="pip install"):
        spark_session("never")


def test_the_filter_drops_notices_in_pieces_and_copies_the_rest_at_once():
    notice = b"WARNING: package sun.security.action not in java.base\n"
    stream = [notice[:9], notice[9:] + b"[Stage 0:>", b" 1/2]\r", b"WARNING: of another kind\n", notice]
    assert list(without_notices(stream)) == [b"[Stage 0:>", b" 1/2]\r", b"WARNING: of another kind\n"]


def test_the_filter_gives_out_what_it_held_back_when_the_stream_ends():
    assert list(without_notices([b"WARN"])) == [b"WARN"]
