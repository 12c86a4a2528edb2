#!/usr/bin/env bash
# usage: make.sh [DIR]
# Writes tests/data/hbase (or DIR) anew with HBase. PYTHON names a Python 3.10 or later with pyarrow.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
to=${1:-$here/../../data/hbase}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
"$here/run.sh" write "$new/files"
"${PYTHON:-python3}" "$here/truth.py" "$new/files"
mkdir -p "$to"
rm -rf "${to:?}/files"
mv "$new/files" "$to/files"
