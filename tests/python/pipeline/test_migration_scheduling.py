"""The window of jobs: slow jobs block no other, failed jobs are split, a dead JVM loses no outcome."""

from __future__ import annotations

import datetime
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from coldframe.errors import ColdframeError, UnsupportedError
from coldframe.pipeline import scheduling, session
from coldframe.pipeline.scheduling import InProcess, Pace, SparkScheduler
from coldframe.pipeline.session import in_process, processors


@dataclass(frozen=True)
class Piece:
    """A piece of work: a number, or several."""

    numbers: tuple[int, ...]
    bytes: int = 1 << 30

    def run(self) -> dict[str, Any]:
        return {"numbers": list(self.numbers)}

    def given_up(self, reason: str) -> dict[str, Any]:
        return {"numbers": list(self.numbers), "error": reason}

    def apart(self) -> Sequence[Any]:
        middle = len(self.numbers) // 2
        return [Piece(self.numbers[:middle]), Piece(self.numbers[middle:])] if middle else []


class Cluster:
    """A fake Spark: the scheduler's own threads run the jobs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cores = 2
        self.alive = True
        self.started = 0
        self.job: Callable[[Piece], None] = lambda piece: None
        self.tried: Counter[int] = Counter()
        monkeypatch.setattr(scheduling, "parallelism", lambda _: self.cores)
        monkeypatch.setattr(scheduling, "is_alive", lambda spark: self.alive and spark == self.started)
        monkeypatch.setattr(scheduling, "forget", lambda _: None)
        monkeypatch.setattr(scheduling, "LOOK_SECONDS", 0.01)
        monkeypatch.setattr(scheduling, "_run_job", self._run)

    def start(self) -> Any:
        self.started += 1
        self.alive = True
        return self.started

    def _run(self, spark: Any, works: Sequence[Piece]) -> list[dict[str, Any]]:
        for work in works:
            self.tried.update(work.numbers)
            self.job(work)
        return [work.run() for work in works]

    def run(self, works: Iterator[Piece]) -> Iterator[dict[str, Any]]:
        return SparkScheduler(self.start).run(works)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def singles(count: int) -> Iterator[Piece]:
    return (Piece((number,)) for number in range(count))


def test_a_slow_job_blocks_no_other_job(cluster: Cluster) -> None:
    others = threading.Event()

    def job(piece: Piece) -> None:
        if piece.numbers == (0,):
            assert others.wait(60)

    cluster.job = job
    seen: list[int] = []
    for outcome in cluster.run(singles(100)):
        seen += outcome["numbers"]
        if len(seen) == 99:
            others.set()
    assert seen[-1] == 0
    assert sorted(seen) == list(range(100))


def test_the_window_limits_the_work_that_is_taken(cluster: Cluster) -> None:
    asked = 0

    def works() -> Iterator[Piece]:
        nonlocal asked
        for piece in singles(100):
            asked += 1
            yield piece

    outcomes = cluster.run(works())
    for done in range(1, 20):
        next(outcomes)
        assert asked <= done + scheduling.JOBS_PER_CORE * cluster.cores + 1


def test_the_window_follows_the_cores(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors join and leave during the run."""
    monkeypatch.setattr(scheduling, "LOOK_SECONDS", 0.0)
    asked = done = 0

    def works() -> Iterator[Piece]:
        nonlocal asked
        for piece in singles(400):
            asked += 1
            yield piece

    cluster.cores = 1
    outcomes = cluster.run(works())
    window = []
    for cores in (1, 6, 2):
        cluster.cores, most = cores, 0
        for step in range(100):
            next(outcomes)
            done += 1
            most = max(most, asked - done) if step > 40 else 0
        window.append(most + 1)
    assert window == [2, 12, 4]
    assert len(list(outcomes)) == 100


def test_failed_work_is_retried_alone_and_given_up_alone(cluster: Cluster) -> None:
    def job(piece: Piece) -> None:
        if 7 in piece.numbers:
            raise RuntimeError("the worker died\nand a long stack")

    cluster.job = job
    works = iter([Piece((number,), bytes=0) for number in range(40)])
    outcomes = list(cluster.run(works))
    failed = {outcome["numbers"][0]: outcome["error"] for outcome in outcomes if "error" in outcome}
    assert failed == {7: "the worker process failed: the worker died"}
    assert sorted(outcome["numbers"][0] for outcome in outcomes) == list(range(40))
    # Only the work in the same job as the failed piece was done again, and only once.
    assert cluster.tried[7] == scheduling.ATTEMPTS
    assert max(cluster.tried.values()) == 2


def test_the_deadly_source_of_a_merge_is_isolated_by_halving(cluster: Cluster) -> None:
    def job(piece: Piece) -> None:
        if 77 in piece.numbers:
            raise RuntimeError("the worker died")

    cluster.job = job
    outcomes = list(cluster.run(iter([Piece(tuple(range(100))), Piece((100,))])))
    assert [outcome["numbers"] for outcome in outcomes if "error" in outcome] == [[77]]
    assert sorted(number for outcome in outcomes for number in outcome["numbers"]) == list(range(101))
    assert cluster.tried[77] <= 9


def test_a_dead_jvm_is_not_blamed_on_the_work(cluster: Cluster) -> None:
    died: list[int] = []

    def job(piece: Piece) -> None:
        if piece.numbers[0] in (5, 6, 30) and piece.numbers[0] not in died:
            died.append(piece.numbers[0])
            cluster.alive = False
            raise RuntimeError("the JVM has gone")

    cluster.job = job
    outcomes = list(cluster.run(singles(50)))
    assert [outcome for outcome in outcomes if "error" in outcome] == []
    assert sorted(outcome["numbers"][0] for outcome in outcomes) == list(range(50))
    assert cluster.started > 1


def test_a_jvm_that_always_dies_ends_the_run(cluster: Cluster) -> None:
    def job(piece: Piece) -> None:
        cluster.alive = False
        raise RuntimeError("the JVM has gone")

    cluster.job = job
    with pytest.raises(ColdframeError, match="start the run again to resume it"):
        list(cluster.run(singles(3)))


@dataclass(frozen=True)
class Meeting:
    """Work that waits until a number of pieces run at the same time."""

    number: int
    barrier: threading.Barrier
    bytes: int = 1

    def run(self) -> dict[str, Any]:
        self.barrier.wait(60)
        return {"number": self.number}


def test_in_process_works_in_parallel() -> None:
    barrier = threading.Barrier(3)
    outcomes = InProcess(3).run(Meeting(number, barrier) for number in range(6))
    assert sorted(outcome["number"] for outcome in outcomes) == list(range(6))


@pytest.mark.parametrize("threads", [1, 2])
def test_in_process_takes_only_as_much_work_as_its_threads_can_do(threads: int) -> None:
    given = 0

    def pieces() -> Iterator[Piece]:
        nonlocal given
        for piece in singles(10):
            given += 1
            yield piece

    for back, _ in enumerate(InProcess(threads).run(pieces()), 1):
        assert given - back < threads + 1
    assert given == 10


def test_in_process_drops_work_that_has_not_begun_when_the_run_ends() -> None:
    asked: list[int] = []

    def pieces() -> Iterator[Piece]:
        for piece in singles(100):
            asked.append(piece.numbers[0])
            yield piece

    running = InProcess(2).run(pieces())
    next(running)
    running.close()
    assert len(asked) <= 4


def test_a_master_in_process_names_its_threads() -> None:
    assert in_process("in-process") == (processors(), None)
    assert in_process("in-process[*]") == (processors(), None)
    assert in_process("in-process[3]") == (3, None)
    assert in_process("local[2]") == (None, None)
    for wrong in ("in-process[0]", "in-process[two]", "in-processes"):
        with pytest.raises(ValueError, match="in-process"):
            in_process(wrong)


def test_without_pyspark_or_java_the_work_is_done_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(session, "find_java", lambda: "/somewhere")
    monkeypatch.setattr(session, "find_spec", lambda _: object())
    assert in_process(None) == (None, None)
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    assert in_process(None) == (processors(), "PySpark is not installed")

    def no_java() -> str:
        raise UnsupportedError("Spark without Java 17 or later (found: none)")

    monkeypatch.setattr(session, "find_spec", lambda _: object())
    monkeypatch.setattr(session, "find_java", no_java)
    assert in_process(None) == (processors(), "there is no Java for Spark")
    monkeypatch.setenv("SPARK_ENV_LOADED", "1")
    assert in_process(None) == (None, None)


def test_our_own_jvm_is_small_and_the_environment_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dx=y")
    with session._light_jvm(True):
        assert os.environ["SPARK_SUBMIT_OPTS"].endswith(" -Dx=y")
        assert "TieredStopAtLevel" in os.environ["SPARK_SUBMIT_OPTS"]
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dx=y"
    with session._light_jvm(False):
        assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dx=y"


def test_work_waits_for_its_bytes_and_runs_in_one_spell() -> None:
    clock = Clock()
    pace = Pace(100, clock=clock.seconds, sleep=clock.sleep)
    pieces = iter([Piece((number,), bytes=50) for number in range(3)])
    spells = [list(InProcess().run(spell)) for spell in pace.spells(pieces)]
    assert spells == [[{"numbers": [0]}, {"numbers": [1]}, {"numbers": [2]}]]
    assert clock.slept == [0.5, 0.5, 0.5]


def test_work_starts_in_its_window_only() -> None:
    clock = Clock()
    pace = Pace(window=(22 * 60, 6 * 60), now=clock.now, sleep=clock.sleep)
    started: list[int] = []

    class Slow(Piece):
        def run(self) -> dict[str, Any]:
            started.append(clock.now().hour)
            clock.sleep(5 * 3600)
            return super().run()

    assert clock.now().hour == 12
    pieces = iter([Slow((number,)) for number in range(3)])
    spells = [list(InProcess().run(spell)) for spell in pace.spells(pieces)]
    assert [len(spell) for spell in spells] == [2, 1]
    assert started == [22, 3, 22]


def test_a_window_within_a_day() -> None:
    clock = Clock()
    pace = Pace(window=(13 * 60 + 30, 14 * 60), now=clock.now, sleep=clock.sleep)
    assert [len(list(spell)) for spell in pace.spells(iter([Piece((1,))]))] == [1]
    assert (clock.now().hour, clock.now().minute) == (13, 30)


class Clock:
    """A clock that runs only while something sleeps; it begins at noon."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._total = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._total += seconds

    def seconds(self) -> float:
        return 1000 + self._total

    def now(self) -> datetime.datetime:
        return datetime.datetime(2014, 1, 1, 12) + datetime.timedelta(seconds=self._total)
