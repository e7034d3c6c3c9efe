"""What can be missing before Spark runs, and what can be wrong with what it is given."""

from spark_planner.java import JAVA_MISSING


class SparkPlannerError(Exception):
    """Base of this package's errors; the message is one line, fit to be shown to a user as it is."""


class JavaMissing(SparkPlannerError):
    """No Java that can run Spark was found on this machine."""

    def __init__(self) -> None:
        super().__init__(JAVA_MISSING)


class PySparkMissing(SparkPlannerError):
    """PySpark, which only the planner needs, is not installed."""

    def __init__(self) -> None:
        super().__init__("PySpark is not installed; get it with: pip install 'distributary[planner]'")


class BadInput(SparkPlannerError):
    """A file to plan from is wrong: ``where`` names the file and row, ``why`` what is wrong with it."""

    def __init__(self, where: str, why: str, more: int = 0) -> None:
        others = f" (and {more:,} more rows are wrong)" if more else ""
        super().__init__(f"{where}: {why}{others}")
        self.where = where
        self.why = why
        self.more = more
