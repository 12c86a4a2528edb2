"""The table that most tests of the Python API read."""

ROWS = 1000

SCHEMA = (
    "id bigint, x int, s string, f double, d decimal(9,2), at timestamp, day date, b boolean, "
    "st struct<a:bigint,b:string>, tags array<string>"
)
