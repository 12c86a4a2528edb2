"""HBase roots derived from the one that HBase wrote."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import coldframe as cf

ROOT = Path(__file__).resolve().parents[1] / "data" / "hbase" / "files" / "orders"
LOG = "WALs/localhost,1,1/localhost%2C1%2C1.1795320174871"
OTHER_LOG = LOG[:-1] + "2"


def add_table(root: Path) -> None:
    """Adds a second table, `shop:others`, with the cells and the unflushed edits of `shop:orders`.

    Both tables' names have the same lengths, so the names can be replaced in place.
    """
    other = root / "data/shop/others"
    names = {b"shop:orders": b"shop:others"}
    shutil.copytree(ROOT / "data/shop/orders", other)
    for region in cf.open(ROOT, table="shop:orders").metadata["regions"]:
        first, encoded = (
            hashlib.md5(f"{table},{region['start']},{region['id']}".encode()).hexdigest()
            for table in ("shop:orders", "shop:others")
        )
        (other / first).rename(other / encoded)
        names[first.encode()] = encoded.encode()
    for file in [*other.rglob(".tableinfo.*"), *other.rglob(".regioninfo")]:
        file.write_bytes(file.read_bytes().replace(b"orders", b"others"))
    log = (ROOT / LOG).read_bytes()
    for old, new in names.items():
        log = log.replace(old, new)
    (root / OTHER_LOG).write_bytes(log)


def remove_table(root: Path) -> None:
    """Removes the table that `add_table` added."""
    shutil.rmtree(root / "data/shop/others")
    (root / OTHER_LOG).unlink()
