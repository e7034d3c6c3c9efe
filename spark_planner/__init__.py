"""The planner as a PySpark job: a snapshot of all subscriptions in, a proposal out.

Planning for very many subscriptions is a batch job; this package runs it on Spark, on the cores of one
machine or on a cluster. The decisions themselves live in ``planner`` and ``rewriting``: here they are only
spread over partitions. No other package imports PySpark, and this one imports it when a session is started,
so that a command can say what is missing before anything slow or fatal happens.

Layers, and where to start reading:

- ``session``: :func:`spark_session`, the one way to get a Spark session. Start here.
- ``quiet``: what keeps Spark and its Java machine from chattering on the terminal.
- ``java``: finds a Java that can run Spark; standard library only, as ``bootstrap.py`` loads it by path.
- ``errors``: what can be missing.
"""

from spark_planner.errors import JavaMissing, PySparkMissing, SparkPlannerError
from spark_planner.java import JavaHome, find_java
from spark_planner.session import spark_session

__all__ = ["JavaHome", "JavaMissing", "PySparkMissing", "SparkPlannerError", "find_java", "spark_session"]
