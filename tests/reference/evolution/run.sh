#!/usr/bin/env bash
# usage: run.sh write DIR | run.sh read DIR
# Runs the program with Hive 4.1.0, or with the version in HIVE_VERSION (2.3.10, 3.1.3); builds it first where it is not built.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version=${HIVE_VERSION:-4.1.0}
target=$here/target/hive-$version
if [ ! -s "$target/classpath" ] || [ -n "$(find "$here/src" "$here/pom.xml" -newer "$target/classpath" -type f)" ]; then
  (cd "$here" && mvn -B -q -Dhive.version="$version" process-classes >&2)
fi
# Hive looks into the private fields of java.net.URI
exec java --add-opens=java.base/java.net=ALL-UNNAMED -Duser.timezone=UTC \
  -cp "$target/classes:$(cat "$target/classpath")" reference.Main "$@"
