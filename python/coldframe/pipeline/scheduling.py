"""Who runs the tasks: Spark's executors, or this process.

    tasks --> bundles (small tasks together) --> a sliding window of jobs, one a bundle --> outcomes

A job is one bundle, so that what fails costs that bundle only: it is taken apart, and each of its tasks runs
once more by itself. The window slides: as soon as a job is back the next one goes, a slow task holds up
nothing, and executors that come later are used. When the JVM is gone, whoever sees it first starts another
one, and the jobs that were under way go again; what an orphaned worker still writes bears the name of its own
attempt, and nobody accepts it.
"""

from __future__ import annotations

import json
import pickle
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.convert import RESULT_SCHEMA, Task, partition_function, run_task
from coldframe.pipeline.session import forget, is_alive, parallelism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Outcome = dict[str, Any]

JOBS_PER_CORE = 2
"""Jobs under way for each core: while one is handed out, another one works."""
MOST_JOBS = 256
"""Threads of the driver that wait for jobs."""
BUNDLE_TASKS = 32
BUNDLE_BYTES = 16 << 20
"""Of sources: larger ones are jobs of their own."""
ATTEMPTS = 2
RESTARTS = 5
"""JVMs started in a row without a task that came back from one."""


class Scheduler(Protocol):
    """Runs tasks somewhere, and gives their outcomes as they come back, in any order."""

    def run(self, tasks: Iterator[Task]) -> Iterator[Outcome]: ...


class InProcess:
    """One task after the other, here: for tests, and where a Spark is not worth its start."""

    def run(self, tasks: Iterator[Task]) -> Iterator[Outcome]:
        """Each task's outcome, before the next one is asked for."""
        for task in tasks:
            yield run_task(task)


@dataclass(frozen=True)
class _Bundle:
    tasks: tuple[Task, ...]
    attempt: int = 1


@dataclass(frozen=True)
class _Answer:
    """What became of a job: outcomes, or why there are none."""

    outcomes: Sequence[Outcome] = ()
    failure: str | None = None
    jvm_gone: bool = False


class SparkScheduler:
    """Tasks as rows of small DataFrames. Their numbers and outcomes are all that passes through the JVM."""

    def __init__(self, spark: SparkSession | Callable[[], SparkSession]) -> None:
        """A session, or what starts one: it is called when the first task comes, and when a JVM has died."""
        self._start = spark if callable(spark) else None
        self._spark: SparkSession | None = None if callable(spark) else spark
        self._lock = threading.Lock()
        self._restarts = 0

    def run(self, tasks: Iterator[Task]) -> Iterator[Outcome]:
        """The outcomes, as the jobs come back."""
        again: deque[_Bundle] = deque()
        bundles = _bundles(tasks)
        first = next(bundles, None)
        if first is None:
            return
        again.append(first)
        window = min(MOST_JOBS, JOBS_PER_CORE * parallelism(self._session()))
        flying: dict[Future[_Answer], _Bundle] = {}
        with ThreadPoolExecutor(window) as threads:
            while True:
                while len(flying) < window:
                    bundle = again.popleft() if again else next(bundles, None)
                    if bundle is None:
                        break
                    flying[threads.submit(self._job, bundle)] = bundle
                if not flying:
                    return
                for future in wait(flying, return_when=FIRST_COMPLETED).done:
                    bundle, answer = flying.pop(future), future.result()
                    if answer.failure is None:
                        yield from answer.outcomes
                    else:
                        again.extend(_once_more(bundle, answer))
                        yield from _given_up(bundle, answer)

    def _session(self) -> SparkSession:
        """The session; a new one where the JVM of the last one has died."""
        with self._lock:
            if self._spark is not None and is_alive(self._spark):
                return self._spark
            if self._start is None:
                raise ColdframeError("Spark's JVM has ended; start the run again, it goes on where it was")
            if self._spark is not None:
                self._restarts += 1
                if self._restarts > RESTARTS:
                    raise ColdframeError(
                        f"Spark's JVM has ended {self._restarts} times; the run can be resumed"
                    )
                forget(self._spark)
                self._spark = None
            self._spark = self._start()
            return self._spark

    def _job(self, bundle: _Bundle) -> _Answer:
        spark = self._session()
        try:
            outcomes = _run_job(spark, bundle.tasks)
        except Exception as error:
            # A task reports its own errors: this is a worker that died, or Spark itself.
            first = (str(error) or type(error).__name__).splitlines()[0][:500]
            return _Answer(failure=first, jvm_gone=not is_alive(spark))
        self._restarts = 0
        return _Answer(outcomes)


def _once_more(bundle: _Bundle, answer: _Answer) -> Iterator[_Bundle]:
    """What of a failed bundle is tried again. A JVM that has died is no task's fault."""
    if answer.jvm_gone:
        yield bundle
    elif len(bundle.tasks) > 1 or bundle.attempt < ATTEMPTS:
        yield from (_Bundle((task,), bundle.attempt + 1) for task in bundle.tasks)


def _given_up(bundle: _Bundle, answer: _Answer) -> Iterator[Outcome]:
    if answer.jvm_gone or len(bundle.tasks) > 1 or bundle.attempt < ATTEMPTS:
        return
    for task in bundle.tasks:
        reason = f"the worker process failed: {answer.failure}"
        yield {"key": task.key, "number": task.number, "seconds": 0.0, "error": reason}


def _bundles(tasks: Iterator[Task]) -> Iterator[_Bundle]:
    """Small tasks together, the first ones alone: a few files shall use all cores."""
    given = 0
    bundle: list[Task] = []
    size = 0
    for task in tasks:
        bundle.append(task)
        size += task.bytes
        if len(bundle) >= min(BUNDLE_TASKS, 1 + given // 16) or size >= BUNDLE_BYTES:
            given += len(bundle)
            yield _Bundle(tuple(bundle))
            bundle, size = [], 0
    if bundle:
        yield _Bundle(tuple(bundle))


def _run_job(spark: SparkSession, tasks: Sequence[Task]) -> list[Outcome]:
    numbers = spark.range(0, len(tasks), 1, 1)
    function: Callable[..., Any] = partition_function([pickle.dumps(task) for task in tasks])
    with warnings.catch_warnings():
        # PySpark warns of the newest pandas, which has no part in this.
        warnings.simplefilter("ignore", FutureWarning)
        answers = numbers.mapInArrow(function, RESULT_SCHEMA)
    outcomes = [json.loads(row.result) for row in answers.collect()]
    if len(outcomes) != len(tasks):
        raise RuntimeError(f"{len(tasks)} tasks gave {len(outcomes)} outcomes")
    return outcomes
