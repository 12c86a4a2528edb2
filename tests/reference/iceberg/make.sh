#!/bin/sh
# Has Spark 4.0 and Iceberg 1.10.0 write tests/data/iceberg: tables, and the rows of each of their snapshots.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=1.10.0
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip -q install 'pyspark>=4.0,<4.1' 'pyarrow>=18' 'pandas>=2,<3' numpy
mvn -q -B dependency:copy -Dartifact=org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:$version -DoutputDirectory="$work"
"$work/venv/bin/python" "$here/make.py" "$work/iceberg-spark-runtime-4.0_2.13-$version.jar" "$here/../../data/iceberg"
