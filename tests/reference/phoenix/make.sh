#!/usr/bin/env bash
# usage: make.sh [DIR]
# Writes tests/data/phoenix (or DIR) anew: cells by Phoenix, store files by HBase.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
to=${1:-$here/../../data/phoenix}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
"$here/run.sh" "$here/statements.sql" "$new"
for cells in "$new"/*.cells; do
  table=$(basename "$cells" .cells)
  "$here/../hbase/run.sh" cells "$new/root" "$table" "$cells"
done
find "$new" -name '.*.crc' -delete
rm -rf "$new/root/WALs" "$new/root/oldWALs" "$new"/*.cells
mkdir -p "$to"
rm -rf "${to:?}/files"
mkdir "$to/files"
mv "$new"/* "$to/files"
