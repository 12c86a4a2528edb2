#!/bin/sh
# Has Hudi write tests/data/hudi: a table's metadata without its data files, and what Hudi read after each of its commits.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../data/hudi
version=1.1.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mvn -q -B -f "$here/pom.xml" compile dependency:build-classpath -Dmdep.outputFile="$work/classpath" >/dev/null
java -cp "$here/target/classes:$(cat "$work/classpath")" MetadataTable "$work/lab"
mkdir -p "$data"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=ustar --exclude='*.crc' --exclude='*.parquet' \
  -cf - lab | gzip -9n >"$data/lab-$version.tar.gz"
cp "$work/lab.json" "$data/lab-$version.json"
