#!/usr/bin/env bash
# usage: run.sh write DIR | run.sh load DIR CELLS CODEC | run.sh scan DIR PASSES | run.sh get DIR ROWS N PASSES
# Runs the program with HBase 2.6; builds it first where it is not built.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=$here/target
if [ ! -s "$target/classpath" ] || [ -n "$(find "$here/src" "$here/pom.xml" -newer "$target/classpath" -type f)" ]; then
  (cd "$here" && mvn -B -q process-classes >&2)
fi
# HBase takes bytes apart by way of the JDK's own
exec java --add-opens=java.base/java.nio=ALL-UNNAMED --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED \
  --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
  -cp "$target/classes:$(cat "$target/classpath")" reference.Main "$@"
