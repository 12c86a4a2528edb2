"""Runs the work: on Spark's executors, or in threads of this process.

    work --> bundles (small pieces together) --> a sliding window of jobs, one per bundle --> outcomes

A piece of work is a row of a DataFrame, its outcome a row of JSON. A job is one bundle, so that a failure
costs only that bundle: it is split, and each of its pieces is repeated alone. The window slides: as soon as
one job is back, the next job starts. A slow job delays nothing, and the window follows the number of
executors. If the JVM is gone, whichever thread notices first starts another one, and the running jobs are
repeated. An orphaned worker writes under the name of its own attempt, which is never accepted.

`Pace` decides when the next piece may start.
"""

from __future__ import annotations

import datetime
import logging
import pickle
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from coldframe._coldframe import ColdframeError
from coldframe.pipeline.records import Record, dumps, loads
from coldframe.pipeline.session import forget, is_alive, parallelism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

JOBS_PER_CORE = 2
"""The number of running jobs for each core: while one job is handed out, another one works."""
MAX_JOBS = 256
"""The number of threads of the driver that wait for jobs."""
BUNDLE_WORKS = 256
BUNDLE_BYTES = 16 << 20
"""Source bytes in a bundle: larger sources are jobs by themselves."""
ATTEMPTS = 2
RESTARTS = 5
"""The maximum number of consecutive JVMs that die without finishing a job."""
LOOK_SECONDS = 5.0
"""Interval between queries for the number of cores."""
WORK_SCHEMA = "work binary"
OUTCOME_SCHEMA = "outcome string"


class Work(Protocol[R_co]):
    """Work that can run anywhere. The work is pickled.

    Work that consists of many pieces has `apart`, which returns two halves: they serve to find a piece that
    kills workers. Work for a whole session has `run_in`, which the driver calls instead of `run`; it raises
    only if the session is lost.
    """

    @property
    def bytes(self) -> int:
        """The work's cost: about how many bytes of the source it reads."""

    def run(self) -> R_co:
        """Runs it. Errors are in the outcome, a record; nothing is raised."""

    def given_up(self, reason: str) -> R_co:
        """The outcome if no worker could run the work."""


class Scheduler(Protocol):
    """Runs work somewhere, and returns outcomes in the order in which they arrive."""

    def run(self, works: Iterator[Work[R]]) -> Iterator[R]: ...


class InProcess:
    """Threads of this process, which decode and write without the GIL: no Spark, no JVM.

    By default a single thread runs the pieces in a known order. A crash of the process ends the run;
    restarting it resumes, as after any kill.
    """

    def __init__(self, threads: int = 1) -> None:
        """`threads`: how many pieces run at once."""
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        self._threads = threads

    def run(self, works: Iterator[Work[R]]) -> Iterator[R]:
        """Outcomes as they arrive. A piece is requested only when a thread is free for it."""
        if self._threads == 1:
            for work in works:
                yield work.run()
            return
        threads = ThreadPoolExecutor(self._threads, thread_name_prefix="coldframe-migrate")
        try:
            yield from self._side_by_side(threads, works)
        finally:
            # An interrupt does not wait for pieces that have not started.
            threads.shutdown(cancel_futures=True)

    def _side_by_side(self, threads: ThreadPoolExecutor, works: Iterator[Work[R]]) -> Iterator[R]:
        flying: set[Future[R]] = set()
        while True:
            while len(flying) < self._threads and (work := next(works, None)) is not None:
                flying.add(threads.submit(work.run))
            if not flying:
                return
            back, flying = wait(flying, return_when=FIRST_COMPLETED)
            for future in back:
                yield future.result()


SIDE_BY_SIDE = 256
"""Concurrent requests to a store: a request takes about ten milliseconds of waiting and almost no work."""


def in_threads(calls: Iterable[Callable[[], R]], count: int) -> Iterator[R]:
    """The results of calls, in order.

    Only some calls run ahead of the result that is returned; later calls are not requested yet.
    """
    with ThreadPoolExecutor(count) as threads:
        flying: deque[Future[R]] = deque()
        for call in calls:
            flying.append(threads.submit(call))
            if len(flying) >= 2 * count:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()


class Threads:
    """Runs work in several threads of this process: for work that waits for disks and stores."""

    def __init__(self, count: int) -> None:
        self._count = count

    def run(self, works: Iterator[Work[R]]) -> Iterator[R]:
        """Outcomes in the order of the work; only a part of it runs at a time."""
        return in_threads((work.run for work in works), self._count)


@dataclass
class Pace:
    """Holds work back: at most so many bytes of the source in a second, and only in some hours of the day.

    Running work is never interrupted.
    """

    bytes_per_second: int | None = None
    window: tuple[int, int] | None = None
    """Its beginning and end, in minutes since midnight; the end may be on the next day."""
    now: Callable[[], datetime.datetime] = datetime.datetime.now
    """The local time."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _due: float = field(default=0.0, repr=False)

    def spells(self, works: Iterator[Work[R]]) -> Iterator[Iterator[Work[R]]]:
        """The work in parts: one for each time that the window is open. Take all outcomes of a part before
        you request the next one, which may mean hours of waiting.
        """
        ended = False

        def spell() -> Iterator[Work[R]]:
            nonlocal ended
            while True:
                self._slow_down()
                if not self._is_open:
                    return
                work = next(works, None)
                if work is None:
                    ended = True
                    return
                if self.bytes_per_second:
                    self._due += work.bytes / self.bytes_per_second
                yield work

        while not ended:
            if not self._is_open:
                _log.info("waiting for the window")
            while not self._is_open:
                self.sleep(LOOK_SECONDS)
            yield spell()

    def _slow_down(self) -> None:
        if self.bytes_per_second:
            now = self.clock()
            if now < self._due:
                self.sleep(self._due - now)
            self._due = max(self._due, now)

    @property
    def _is_open(self) -> bool:
        if self.window is None:
            return True
        begin, end = self.window
        now = self.now()
        minute = 60 * now.hour + now.minute
        return begin <= minute < end if begin < end else not end <= minute < begin


@dataclass(frozen=True)
class _Bundle:
    works: tuple[Any, ...]
    attempt: int = 1


@dataclass(frozen=True)
class _Answer:
    """The result of a job: outcomes, or the reason why there are no outcomes."""

    outcomes: Sequence[Any] = ()
    failure: str | None = None
    jvm_gone: bool = False


class SparkScheduler:
    """Work as rows of small DataFrames. The rows of tables never pass through the JVM."""

    def __init__(self, spark: SparkSession | Callable[[], SparkSession]) -> None:
        """`spark`: a session, or a function that starts one, called when there is work or a JVM has died."""
        self._start = spark if callable(spark) else None
        self._spark: SparkSession | None = None if callable(spark) else spark
        self._lock = threading.Lock()
        self._restarts = 0
        self._looked, self._window = 0.0, 1

    def run(self, works: Iterator[Work[R]]) -> Iterator[R]:
        """The outcomes, as jobs finish."""
        again: deque[_Bundle] = deque()
        bundles = _bundles(works)
        first = next(bundles, None)
        if first is None:
            return
        again.append(first)
        flying: dict[Future[_Answer], _Bundle] = {}
        with ThreadPoolExecutor(MAX_JOBS) as threads:
            while True:
                while len(flying) < self._size():
                    bundle = again.popleft() if again else next(bundles, None)
                    if bundle is None:
                        break
                    flying[threads.submit(self._job, bundle)] = bundle
                if not flying:
                    return
                for future in wait(flying, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED).done:
                    bundle, answer = flying.pop(future), future.result()
                    if answer.failure is None:
                        yield from answer.outcomes
                    else:
                        again.extend(_once_more(bundle, answer))
                        yield from _given_up(bundle, answer)

    def _size(self) -> int:
        """How many jobs may run, given the current number of cores."""
        now = time.monotonic()
        if not self._looked or now - self._looked > LOOK_SECONDS:
            self._window = min(MAX_JOBS, JOBS_PER_CORE * parallelism(self._session()))
            self._looked = now
        return self._window

    def _session(self) -> SparkSession:
        """The session; a new session if the JVM of the last session has died."""
        with self._lock:
            if self._spark is not None and is_alive(self._spark):
                return self._spark
            if self._start is None:
                raise ColdframeError("Spark's JVM has ended; start the run again to resume it")
            if self._spark is not None:
                self._restarts += 1
                if self._restarts > RESTARTS:
                    raise ColdframeError(
                        f"Spark's JVM has ended {self._restarts} times; start the run again to resume it"
                    )
                forget(self._spark)
                self._spark = None
            self._spark = self._start()
            return self._spark

    def _job(self, bundle: _Bundle) -> _Answer:
        spark = self._session()
        try:
            outcomes = _run_job(spark, bundle.works)
        except Exception as error:
            # Work reports its own errors, so this is an error of a dead worker, or of Spark.
            first = (str(error) or type(error).__name__).splitlines()[0][:500]
            return _Answer(failure=first, jvm_gone=not is_alive(spark))
        self._restarts = 0
        return _Answer(outcomes)


def _once_more(bundle: _Bundle, answer: _Answer) -> Iterator[_Bundle]:
    """The bundles that repeat a failed bundle. A dead JVM is not counted as an attempt."""
    if answer.jvm_gone:
        yield bundle
        return
    for work in bundle.works:
        halves = _apart(work)
        if halves:
            yield from (_Bundle((half,), bundle.attempt + 1) for half in halves)
        elif len(bundle.works) > 1 or bundle.attempt < ATTEMPTS:
            yield _Bundle((work,), bundle.attempt + 1)


def _given_up(bundle: _Bundle, answer: _Answer) -> Iterator[Any]:
    if answer.jvm_gone or len(bundle.works) > 1 or bundle.attempt < ATTEMPTS:
        return
    for work in bundle.works:
        if not _apart(work):
            yield work.given_up(f"the worker process failed: {answer.failure}")


def _apart(work: Any) -> Sequence[Any]:
    """The two halves of work that consists of many pieces; nothing for other work."""
    apart = getattr(work, "apart", None)
    return apart() if apart is not None else ()


def _bundles(works: Iterator[Any]) -> Iterator[_Bundle]:
    """Groups small pieces. Bundles begin small, so that a few files use all cores."""
    given = 0
    bundle: list[Any] = []
    size = 0
    for work in works:
        bundle.append(work)
        size += work.bytes
        if len(bundle) >= min(BUNDLE_WORKS, 1 + given // 16) or size >= BUNDLE_BYTES:
            given += len(bundle)
            yield _Bundle(tuple(bundle))
            bundle, size = [], 0
    if bundle:
        yield _Bundle(tuple(bundle))


def _run_job(spark: SparkSession, works: Sequence[Any]) -> list[Record]:
    of_session = [work for work in works if hasattr(work, "run_in")]
    return [
        *_run_on_executor(spark, [work for work in works if not hasattr(work, "run_in")]),
        *(work.run_in(spark) for work in of_session),
    ]


def _run_on_executor(spark: SparkSession, works: Sequence[Any]) -> list[Record]:
    if not works:
        return []
    with warnings.catch_warnings():
        # PySpark warns about the newest pandas, which is not used here.
        warnings.simplefilter("ignore", FutureWarning)
        rows = spark.createDataFrame([(bytearray(pickle.dumps(work)),) for work in works], WORK_SCHEMA)
        # All in one task, whatever the session's number of partitions.
        answers = rows.coalesce(1).mapInArrow(run_rows, OUTCOME_SCHEMA)
        outcomes = [loads(row.outcome) for row in answers.collect()]
    if len(outcomes) != len(works):
        raise RuntimeError(f"{len(works)} pieces of work gave {len(outcomes)} outcomes")
    return outcomes


def run_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `mapInArrow` runs: each row is a piece of work, each answer its outcome as JSON."""
    for batch in batches:
        for pickled in batch.column(0):
            outcome = pickle.loads(pickled.as_py()).run()
            yield pa.RecordBatch.from_pydict({"outcome": [dumps(outcome)]})
