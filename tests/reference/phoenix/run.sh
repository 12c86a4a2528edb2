#!/usr/bin/env bash
# usage: run.sh STATEMENTS DIR
# Runs Phoenix's client over the statements; builds it first where it is not built.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
target=$here/target
if [ ! -s "$target/classpath" ] || [ -n "$(find "$here/src" "$here/pom.xml" -newer "$target/classpath" -type f)" ]; then
  (cd "$here" && mvn -B -q process-classes >&2)
fi
exec java -Duser.timezone=UTC --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED \
  -cp "$target/classes:$(cat "$target/classpath")" reference.Phoenix "$@"
