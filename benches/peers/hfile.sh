#!/usr/bin/env bash
# usage: benches/peers/hfile.sh DIR [PASSES]
# Writes the files of benches/hfile_peers.py into DIR where they are not there yet, by HBase 2.6 and hudi-io 1.2, then has
# both read and look up, PASSES times (5) each, on one thread. JSON lines on standard output.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
target=$here/hfile/target
(cd "$here/hfile" && mvn -B -q process-classes >&2)

hfiles() {
  java --add-opens=java.base/java.nio=ALL-UNNAMED --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED \
    --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED -Xmx1500m \
    -cp "$target/classes:$(cat "$target/classpath")" peers.HFiles "$@"
}

if [ ! -s "$1/hbase_fast_diff.hfile" ]; then
  hfiles write "$1/unfinished"
  mv "$1"/unfinished/*.hfile "$1"
  rmdir "$1/unfinished"
fi
hfiles read "$1" "${2:-5}" | grep '^{'
