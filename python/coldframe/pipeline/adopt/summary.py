"""The outcome of an adoption, or its plan, in a few lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from coldframe.byte_size import counted, size_text
from coldframe.pipeline.adopt.records import CONVERTED, READS_SOURCE, STAYS, Adoption, TableOutcome
from coldframe.pipeline.adopt.rules import DETACHED


def adoption_text(adoption: Adoption) -> str:
    """What stays, what is converted and why, table by table."""
    lines: list[str] = []
    for table in adoption.adopted:
        lines += _lines(table, is_plan=adoption.is_plan)
    lines += [f"LEFT OUT: {name}: {reason}" for name, reason in adoption.left_out_tables]
    done = [table for table in adoption.adopted if not table.refused]
    stays, converted = (sum(table.bytes_of(word) for table in done) for word in (STAYS, CONVERTED))
    will = "would stay" if adoption.is_plan else "stay"
    to_convert = "to convert" if adoption.is_plan else "converted"
    lines.append(
        f"{len(done):,} of {len(adoption.adopted):,} tables: {size_text(stays)} {will} where they are, "
        f"{size_text(converted)} {to_convert}; {adoption.rows:,} rows"
    )
    if not adoption.is_plan and stays:
        lines.append(
            "the new tables read the files of the source: deleting or changing these breaks the tables, and "
            "none of them is ever listed as safe to delete"
        )
    return "\n".join(lines)


def _lines(table: TableOutcome, *, is_plan: bool) -> Iterator[str]:
    if table.refused:
        yield f"{table.name}: REFUSED: {table.refused}"
    else:
        figures = [
            f"{counted(table.count(word), 'file')} ({size_text(table.bytes_of(word))}) {word}"
            for word in (STAYS, CONVERTED)
            if table.count(word)
        ]
        proof = "" if is_plan else f", {table.verdict.text}"
        if table.by_spark and table.verified and any(verdict.by_spark for verdict in table.verdicts):
            proof += ", by Spark as well"
        yield f"{table.name}: {', '.join(figures) or 'no files'}; {table.rows:,} rows{proof}"
        if table.new < len(table.verdicts):
            before = counted(len(table.verdicts) - table.new, "file")
            yield f"  {counted(table.new, 'file')} new or changed, {before} as before"
        if table.metadata.get(READS_SOURCE) is False and table.reasons[DETACHED]:
            yield "  detached: it reads no file of the source any more"
        for reason, count in table.reasons.most_common():
            yield f"  converted, {counted(count, 'file')}: {reason}"
        if table.vanished:
            what = {"fail": "--on-vanished says what to do", "keep": "their rows stay", "remove": "taken out"}
            count, first = len(table.vanished), table.vanished[0]
            yield f"  {counted(count, 'file')} gone, such as {first}: {what[table.on_vanished]}"
    for note in table.notes:
        yield f"  {note}"
