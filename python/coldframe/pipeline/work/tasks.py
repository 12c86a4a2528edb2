"""The tasks of a run: one split each, or small sources that become one file together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from coldframe.pipeline.options import Options
from coldframe.pipeline.plan.grouping import grouped
from coldframe.pipeline.plan.plan_files import partition_values, splits_of
from coldframe.pipeline.plan.table_work import TableWork
from coldframe.pipeline.records import MergeOutcome, Outcome, PlannedFile
from coldframe.pipeline.scheduling import Work
from coldframe.pipeline.sink.destination import Destination
from coldframe.pipeline.sink.sinks import ParquetSink, Sink
from coldframe.pipeline.sink.targets import Target
from coldframe.pipeline.state.journal import Journal
from coldframe.pipeline.work.by_spark import SparkTask
from coldframe.pipeline.work.committing import Committer, stem_of
from coldframe.pipeline.work.convert import Task
from coldframe.pipeline.work.in_flight import InFlight, Running
from coldframe.pipeline.work.merging import MergeTask


@dataclass
class Conversion:
    """The tasks for planned files."""

    options: Options
    target: Target
    destination: Destination
    journal: Journal
    committer: Committer
    flight: InFlight
    _sinks: dict[str, Sink] = field(default_factory=dict)

    def tasks(
        self, works: Sequence[TableWork], finish: Callable[[Running], None]
    ) -> Iterator[Work[Outcome | MergeOutcome]]:
        """The tasks in order. Calls `finish` for sources that need no more tasks."""
        for work in works:
            # Sources whose rows are divided do not share files.
            file_bytes = 0 if work.divided_by else work.file_bytes(self.options.target_file_bytes)
            for group in grouped(work.planned, file_bytes, self.journal.done.file_shared_by):
                begun = [self.flight.begin(work, planned) for planned in group]
                if len(group) > 1:
                    yield self._merge(work, group)
                else:
                    yield from self._each(begun[0], finish)

    def _each(self, running: Running, finish: Callable[[Running], None]) -> Iterator[Task | SparkTask]:
        """Tasks for the parts of a file that no earlier run has converted; no task for a file
        without rows.
        """
        if len(running.planned.parts) > 1:
            running.outcomes.update(self.committer.kept(running))
        if running.is_back:
            finish(running)
            self.committer.settle()
            return
        done = frozenset(running.outcomes)
        if running.work.table.reading_of(running.planned.file).by_spark is not None:
            yield self._by_spark(running.work, running.planned)
            return
        yield from (task for task in self._of(running.work, running.planned) if task.number not in done)

    def _sink_of(self, work: TableWork) -> Sink:
        """The sink for files of a table: Iceberg finds columns by the ids in them."""
        sink, number = self.target.sink, self.target.number_columns
        if number is None or work.schema is None or not isinstance(sink, ParquetSink):
            return sink
        if work.table.path not in self._sinks:
            name = self.journal.state.name_of(work.table.name, work.table.path)
            ids = number(self.destination, name, work.schema)
            self._sinks[work.table.path] = replace(sink, field_ids=ids)
        return self._sinks[work.table.path]

    def _merge(self, work: TableWork, group: Sequence[PlannedFile]) -> MergeTask:
        tasks = tuple(task for planned in group for task in self._of(work, planned))
        return MergeTask(tasks, tasks[0].staged, stem_of(group[0].file.relative))

    def _by_spark(self, work: TableWork, planned: PlannedFile) -> SparkTask:
        reading = work.table.reading_of(planned.file)
        if work.schema is None or reading.by_spark is None:
            raise AssertionError("a directory that Spark does not read was planned")
        return SparkTask(
            key=planned.key,
            location=planned.file.path,
            definition=reading.by_spark,
            read=work.schemas[planned.schema],
            schema=work.schema,
            constants=partition_values(planned.file, work.table) if self.target.partitions_inside else (),
            staged=os.path.join(self.journal.staging, f"{planned.key}-0000.{self.target.sink.extension}"),
            sink=self._sink_of(work),
            verify=self.options.verify,
            bytes=planned.file.share,
            file_bytes=work.file_bytes(self.options.target_file_bytes),
            divided_by=work.divided_by,
            target_options=self.destination.storage_options,
        )

    def _of(self, work: TableWork, planned: PlannedFile) -> Iterator[Task]:
        if work.schema is None:
            raise AssertionError("a file without columns was planned")
        options, sink = self.options, self._sink_of(work)
        constants = partition_values(planned.file, work.table) if self.target.partitions_inside else ()
        for number, split in enumerate(splits_of(planned, work.table, options.timestamp_unit)):
            name = f"{planned.key}-{number:04d}.{sink.extension}"
            yield Task(
                key=planned.key,
                number=number,
                split=split,
                schema=work.schema,
                names=planned.names,
                constants=constants,
                staged=os.path.join(self.journal.staging, name),
                sink=sink,
                on_error="raise" if options.on_error == "raise" else "skip",
                unit=options.timestamp_unit,
                verify=options.verify,
                bytes=planned.file.share // len(planned.parts),
                file_bytes=work.file_bytes(options.target_file_bytes),
                divided_by=work.divided_by,
                rows=planned.rows if len(planned.parts) == 1 else None,
                source=planned.file.path,
                # A directory is checked after its last byte was read: see `directory_checks`.
                identity="" if planned.file.is_folder else planned.file.identity,
                digest=number == 0 and not (planned.file.etag or planned.file.is_folder),
                source_options=planned.file.storage_options,
                target_options=self.destination.storage_options,
            )
