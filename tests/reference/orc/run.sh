#!/usr/bin/env bash
# usage: run.sh write DIR | run.sh read FILE [KEY=VALUE...] | run.sh copy FROM TO [KEY=VALUE...]
# Runs the program with orc-core 2.3.0; builds it first where it is not built.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=$here/target
if [ ! -s "$target/classpath" ] || [ -n "$(find "$here/src" "$here/pom.xml" -newer "$target/classpath" -type f)" ]; then
  (cd "$here" && mvn -B -q process-classes >&2)
fi
exec java -Duser.timezone=UTC -cp "$target/classes:$(cat "$target/classpath")" reference.Main "$@"
