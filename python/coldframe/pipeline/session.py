"""A Spark session for the command line, without console output."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from coldframe._coldframe import UnsupportedError
from coldframe.errors import install_hint
from coldframe.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_LIGHT = "-XX:TieredStopAtLevel=1"
_IN_PROCESS = re.compile(r"in-process(?:\[(\*|[1-9]\d{0,3})\])?\Z")


def in_process(master: str | None) -> tuple[int | None, str | None]:
    """How many threads of this process do the work (None: Spark does it), and why, if the user has not asked
    for threads.
    """
    if master is not None and master.startswith("in-process"):
        match = _IN_PROCESS.match(master)
        if match is None:
            raise ValueError(f"--master {master}: in-process, or in-process[N] for N threads")
        number = match.group(1)
        return processors() if number in (None, "*") else int(number), None
    if master is not None or _under_submit():
        return None, None
    if find_spec("pyspark") is None:
        return processors(), "PySpark is not installed"
    try:
        find_java()
    except UnsupportedError:
        return processors(), "there is no Java for Spark"
    return None, None


def processors() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _under_submit() -> bool:
    return "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ


def start_session(master: str | None = None, *, conf: dict[str, str] | None = None) -> SparkSession:
    """The running session (under spark-submit), or a new session that talks to loopback only."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise UnsupportedError(f"migrating without PySpark; {install_hint('spark')}") from missing
    running = SparkSession.getActiveSession()
    if running is not None and master is None:
        return running
    os.environ["JAVA_HOME"] = find_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = master is None or master.startswith("local")
    settings: dict[str, str] = {}
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    settings |= {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # The pipeline itself repeats failed tasks.
        "spark.task.maxFailures": "1",
        **(conf or {}),
    }
    builder: Any = SparkSession.builder.appName("coldframe migrate")
    under_submit = _under_submit()
    if master is not None or not under_submit:
        builder = builder.master(master or "local[*]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _quiet_start(), _light_jvm(local and not under_submit):
        session: SparkSession = builder.getOrCreate()
    SparkContext.getOrCreate().setLogLevel("ERROR")
    return session


@contextlib.contextmanager
def _light_jvm(is_ours: bool) -> Iterator[None]:
    """Starts our own JVM, which only schedules, with the quick compiler: that takes half the time."""
    given = os.environ.get("SPARK_SUBMIT_OPTS")
    if not is_ours or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield
        return
    # The user's own settings come last, and the last setting wins.
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_LIGHT} {given or ''}".strip()
    try:
        yield
    finally:
        if given is None:
            del os.environ["SPARK_SUBMIT_OPTS"]
        else:
            os.environ["SPARK_SUBMIT_OPTS"] = given


@contextlib.contextmanager
def _quiet_start() -> Iterator[None]:
    """Keeps the JVM's greeting (a dozen lines before its log level can be set) off the terminal.

    The JVM inherits a file instead of the terminal; its contents are shown if the JVM does not start.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        yield
        return
    with tempfile.TemporaryFile() as output:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(output.fileno(), 2)
        started = False
        try:
            yield
            started = True
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            if not started:
                output.seek(0)
                sys.stderr.write(output.read().decode(errors="replace"))


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:
        # A Spark Connect session has no context to ask.
        return 8


def has_hive(spark: SparkSession) -> bool:
    """Whether a session has Hive's classes, and a JVM of its own."""
    given: Any = spark
    try:
        return given.sparkContext._jvm is not None and (
            given.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive"
        )
    except Exception:
        # A Spark Connect session.
        return False


def with_hive(master: str | None) -> dict[str, str]:
    """The settings of our own session for reading tables as Hive does."""
    settings = {"spark.sql.catalogImplementation": "hive"}
    if master is None or master.startswith("local"):
        # Hive's classes return timestamps in Java's time zone.
        settings["spark.driver.extraJavaOptions"] = "-Duser.timezone=UTC"
    return settings


def stop(spark: SparkSession) -> None:
    """Stops a session, even if its JVM has died."""
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        spark.stop()


def is_alive(spark: SparkSession) -> bool:
    """Whether the JVM of a session still answers."""
    try:
        gateway: Any = spark.sparkContext._gateway
        process = getattr(gateway, "proc", None)
        if process is not None and process.poll() is not None:
            return False
        gateway.jvm.java.lang.System.currentTimeMillis()
    except AttributeError:
        # A Spark Connect session: the server is not ours.
        return True
    except Exception:
        return False
    return True


def forget(spark: SparkSession) -> None:
    """Discards a session whose JVM has died, so that another one can be started in this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Session

    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        spark.sparkContext.stop()
    context: Any = SparkContext
    with contextlib.suppress(Exception):
        context._gateway.shutdown()
    context._gateway = context._jvm = context._active_spark_context = None
    kept: Any = Session
    kept._instantiatedSession = kept._activeSession = None
