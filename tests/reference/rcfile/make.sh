#!/usr/bin/env bash
# usage: make.sh [DIR]
# Writes tests/data/rcfile (or DIR) anew with Hive 4.1.0 and 2.3.10. PYTHON names a Python 3.10 or later with pyarrow.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
to=${1:-$here/../../data/rcfile}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
"$here/run.sh" write "$new"
HIVE_VERSION=2.3.10 "$here/run.sh" write "$new"
"${PYTHON:-python3}" "$here/truth.py" "$new"
mkdir -p "$to"
for part in files warehouse damaged; do
  rm -rf "${to:?}/$part"
  mv "$new/$part" "$to/$part"
done
