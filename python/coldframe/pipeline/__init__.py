"""Migration of whole directory trees: found, converted, verified row by row, reported.

    from coldframe.pipeline import migrate

    report = migrate(spark, "/warehouse", "/lake", to="parquet", on_error="quarantine")
    report.exit_code, report.rows, report.verified

The command line's `coldframe migrate` does the same with a Spark of its own, and this package's `__main__`
makes it a script for `spark-submit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coldframe.pipeline.report import Report
    from coldframe.pipeline.run import migrate

__all__ = ["Report", "migrate"]


def __getattr__(name: str) -> Any:
    # The command line describes itself without loading Arrow and numpy.
    if name == "migrate":
        from coldframe.pipeline.run import migrate

        return migrate
    if name == "Report":
        from coldframe.pipeline.report import Report

        return Report
    raise AttributeError(name)
