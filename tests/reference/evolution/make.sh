#!/usr/bin/env bash
# Rewrites tests/data/evolution: a file of Hive 4.1 and what each version of Hive reads from them.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../data/evolution
mkdir -p "$data"
rm -f "$data"/*.orc "$data"/.*.crc
"$here/run.sh" write "$data"
rm -f "$data"/.*.crc
for version in 2.3.10 3.1.3 4.1.0; do
  HIVE_VERSION=$version "$here/run.sh" read "$data" > "/tmp/evolution-$version.tsv"
done
python3 "$here/merge.py" 2.3=/tmp/evolution-2.3.10.tsv 3.1=/tmp/evolution-3.1.3.tsv 4.1=/tmp/evolution-4.1.0.tsv > "$data/pairs.tsv"
