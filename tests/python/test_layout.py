"""Layout pages of files."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from browsing import CHROMIUM, needs_chromium

import coldframe as cf
from coldframe.cli import main
from coldframe.layout import page
from coldframe.layout.model import Place, Spot, kind_of, shrunk
from coldframe.layout.page import _data

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def orc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layout") / "rows & columns.orc"
    rows = 200_000
    table = pa.table(
        {
            "id": range(rows),
            "customer": [f"customer {i * 7919 % 5000}" for i in range(rows)],
            "amount": [None if i % 9 == 0 else (i * 2654435761 % 1_000_003) / 7 for i in range(rows)],
        }
    )
    cf.write(table, path, format="orc", codec="zlib", stripe_size=1 << 20)
    return path


@pytest.fixture(scope="module")
def broken(orc: Path) -> Path:
    data = bytearray(orc.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 60] = bytes(60)
    path = orc.with_name("broken.orc")
    path.write_bytes(data)
    return path


class Reader(HTMLParser):
    """Collects the URLs that a browser would fetch, and checks that tags match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        links = [value or "" for name, value in attrs if name in ("src", "href")]
        self.fetched += [link for link in links if not link.startswith("#")]  # a link within the page
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert reader.fetched == []
    return reader


def data_of(text: str) -> Any:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    return json.loads(match.group(1))


def test_page_is_complete_without_scripts(orc: Path) -> None:
    text = page(cf.open(orc))
    reader = read(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    assert reader.counts["svg"] == 1
    assert 'class="tile ' in text
    assert "Layout of rows &amp; columns.orc" in text
    assert "200,000" in text
    assert "No damage found (checked: by its structure alone)" in text
    for column in ("id", "customer", "amount"):
        assert f"<td>{column}</td>" in text
    assert len(text) < 500_000


def test_data_covers_every_byte_with_statistics_and_samples(orc: Path) -> None:
    data = data_of(page(cf.open(orc)))
    raw = orc.read_bytes()

    def leaves(node: list[Any]) -> list[list[Any]]:
        return [leaf for child in node[8] for leaf in leaves(child)] if node[8] else [node]

    at = 0
    for leaf in leaves(data["tree"]):
        assert leaf[1] == at
        at += leaf[2]
        sample = base64.b64decode(leaf[7])
        assert sample == raw[leaf[1] : leaf[1] + len(sample)]
        assert len(sample) == min(512, leaf[2])
    assert at == len(raw)
    details = [data["details"][leaf[4]] for leaf in leaves(data["tree"]) if leaf[4] >= 0]
    amounts = [detail for detail in details if detail.get("path") == "amount" and "encoding" in detail]
    assert amounts
    assert all({"min", "max", "has_null"} <= detail.keys() for detail in amounts)


def test_damage_is_marked_at_its_place(broken: Path) -> None:
    text = page(cf.open(broken), verify=True)
    read(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    assert "Damaged in 1 place" in text
    assert 'class="broken"' in text
    lost = cf.open(broken).verify()["damage"][0]
    data = data_of(text)

    def marked(node: list[Any]) -> list[list[Any]]:
        return [node] * (node[5] >= 0) + [leaf for child in node[8] for leaf in marked(child)]

    [node] = marked(data["tree"])
    assert node[1] <= lost["offset"] < node[1] + node[2]
    assert lost["reason"] in data["texts"][node[5]]


def tree_of(units: int, streams: int) -> dict[str, Any]:
    """The layout of a file with very many units."""

    def node(name: str, offset: int, length: int, detail: Any, children: Any = ()) -> dict[str, Any]:
        return {
            "name": name,
            "offset": offset,
            "length": length,
            "detail": detail,
            "children": list(children),
        }

    size = 10 * (1 << 30) // units
    parts = []
    for unit in range(units):
        at, each = unit * size, size // streams
        inner = [node("DATA", at + s * each, each, {"path": f"c{s}"}) for s in range(streams)]
        parts.append(node(f"stripe {unit}", at, each * streams, {"rows": 1000}, inner))
    return node("file", 0, units * size, {}, parts)


def test_page_stays_small_for_every_file() -> None:
    tree = tree_of(20_000, 12)
    bad = tree["children"][13_337]["children"][5]
    place = Place(bad["offset"] + 10, 20, "a checksum differs")
    root = shrunk(tree, [place])
    drawn = list(root.walk())
    assert len(drawn) < 30_000
    assert max(len(spot.children) for spot in drawn) <= 200
    assert sum(spot.parts for spot in drawn) > 100_000
    [mark] = [spot for spot in drawn if spot.damage]
    assert (mark.offset, mark.label) == (bad["offset"], "c5 DATA")
    assert root.children[0].name.startswith("stripe 0 … stripe ")

    def check(spot: Spot) -> None:
        assert sum(child.length for child in spot.children) <= spot.length
        assert all(spot.offset <= child.offset and child.end <= spot.end for child in spot.children)
        for child in spot.children:
            check(child)

    check(root)
    from coldframe.layout.colours import Colours
    from coldframe.layout.drawing import icicle, strip
    from coldframe.layout.sources import Bytes

    colours = Colours(root)
    assert len(_data(root, colours, Bytes(None, {}))) < 4_000_000
    assert len(strip(root, colours)) < 2_000_000
    assert len(icicle(root, colours)) < 1_000_000


def test_names_give_kinds() -> None:
    assert kind_of("stripe 12") == "stripe"
    assert kind_of("column chunk `a.b`") == "column chunk"
    assert kind_of("meta/tablet-meta/abc123") == "meta/tablet-meta"


@pytest.mark.parametrize("kind", ["hfile", "rcfile", "redfile", "orc"])
def test_every_kind_of_file_has_a_page(kind: str) -> None:
    for path in sorted((DATA / kind / "files").iterdir())[:12]:
        if path.is_dir() or cf.detect(path) is None:
            continue
        try:
            file = cf.open(path)
        except cf.ColdframeError:
            continue  # it needs a schema or a key
        read(re.sub(r"<script.*?</script>", "", page(file), flags=re.DOTALL))


def test_directories_are_tables_too(tmp_path: Path) -> None:
    kudu = page(cf.open(DATA / "kudu" / "files" / "file_blocks", table="events"))
    assert "tablet" in kudu
    rows = pa.table({"x": range(100), "p": [i % 3 for i in range(100)]})
    cf.write(rows, tmp_path / "t", format="orc", partitioning=["p"])
    (tmp_path / "t" / "p=2" / "part-0.orc").write_bytes(b"ORC and nothing more")
    out = tmp_path / "t.html"
    assert main(["layout", str(tmp_path / "t"), "-o", str(out)]) == 0
    text = out.read_text()
    assert "Damaged in 1 place" in text
    data = data_of(text)
    assert len(data["tree"][8]) == 3
    assert data["tree"][2] == sum(path.stat().st_size for path in (tmp_path / "t").rglob("*.orc"))
    assert "<td>x</td>" in text


def walk(node: list[Any]) -> Iterator[list[Any]]:
    """A node of the page's data and all its descendants."""
    yield node
    for child in node[8]:
        yield from walk(child)


def leaves_of(node: list[Any]) -> list[list[Any]]:
    return [leaf for child in node[8] for leaf in leaves_of(child)] if node[8] else [node]


def hudi_table(folder: Path) -> Path:
    with tarfile.open(DATA / "hudi" / "lab-1.1.1.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "lab"


@pytest.mark.parametrize("kind", ["kudu", "hbase", "hbase folder", "acid", "hudi"])
def test_table_of_many_files_has_one_page(kind: str, tmp_path: Path) -> None:
    whole = tmp_path / "table"
    if kind == "hudi":
        hudi_table(tmp_path).rename(whole)
    else:
        name = {"kudu": "kudu/files/file_blocks", "acid": "hive/files/changes"}.get(
            kind, "hbase/files/orders"
        )
        shutil.copytree(DATA / name, whole)
    root, options, part = {
        "kudu": (whole, {"table": "events"}, "disk1/data/b3/22/da/0196962279574308"),
        "hbase": (whole, {"table": "shop:orders"}, "f/59557177f3e04ecfb9b6afd994285532"),
        "hbase folder": (whole / "data/shop/orders", {}, "f/59557177f3e04ecfb9b6afd994285532"),
        "acid": (whole, {"acid": True}, "delta_0000005_0000005_0000/bucket_00000"),
        "hudi": (
            whole / ".hoodie/metadata",
            {},
            "record_index/record-index-0001-0_0-0-0_20261121143921003.hfile",
        ),
    }[kind]
    [broken] = [path for path in whole.rglob("*") if str(path).endswith(f"/{part}")]
    data = bytearray(broken.read_bytes())
    third = len(data) // 3
    data[third : third + 20] = bytes(byte ^ 255 for byte in data[third : third + 20])
    broken.write_bytes(data)

    text = page(cf.open(root, **options), verify=True)
    content = data_of(text)
    assert "Damaged in 1 place" in text
    marked = [node for node in walk(content["tree"]) if node[5] >= 0]
    assert len(marked) == 1
    above = [node for node in walk(content["tree"]) if marked[0] in walk(node)]
    assert any(f"/{content['texts'][node[0]]}".endswith(f"/{part}") for node in above), [
        content["texts"][node[0]] for node in above
    ]

    # The bytes that the page shows are the bytes of the file.
    [file] = [node for node in walk(content["tree"]) if f"/{content['texts'][node[0]]}".endswith(f"/{part}")]
    samples = [leaf for leaf in leaves_of(file) if leaf[7]]
    assert samples
    for leaf in samples:
        shown = base64.b64decode(leaf[7])
        at = leaf[1] - file[1]
        assert bytes(data[at : at + len(shown)]) == shown
    everywhere = [bool(leaf[7]) for leaf in leaves_of(content["tree"]) if leaf[2]]
    assert sum(everywhere) > len(everywhere) * 0.9


def varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A Protocol Buffers message of numbers and bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is looked up in /proc")
def test_a_file_of_ten_gigabytes_has_a_small_page(tmp_path: Path) -> None:
    """Four columns of zero doubles: the file is sparse and takes no space on disk."""
    rows, columns, stripes = 5_000_000, 4, 64
    path = tmp_path / "big.orc"
    known = []
    with path.open("wb") as file:
        file.write(b"ORC")
        for _ in range(stripes):
            start = file.tell()
            file.seek(columns * 8 * rows, 1)
            streams = [(1, message((1, 1), (2, column), (3, 8 * rows))) for column in range(1, columns + 1)]
            footer = message(*streams, *[(2, message((1, 0)))] * (columns + 1), (3, b"UTC"))
            file.write(footer)
            sizes = [(1, start), (2, 0), (3, columns * 8 * rows), (4, len(footer)), (5, rows)]
            known.append((3, message(*sizes)))
        length = file.tell()
        names = [(3, f"c{column}".encode()) for column in range(columns)]
        root = message((1, 12), *[(2, column) for column in range(1, columns + 1)], *names)
        types = [(4, root), *[(4, message((1, 6)))] * columns]
        tail = message((1, 3), (2, length - 3), *known, *types, (6, rows * stripes))
        script = message((1, len(tail)), (2, 0), (3, 1 << 18), (4, varint(0) + varint(12)), (8000, b"ORC"))
        file.write(tail + script + bytes([len(script)]))
    assert path.stat().st_size > 10_000_000_000
    program = (
        "import re, sys, coldframe as cf; from coldframe.cli import main; "
        "assert cf.open(sys.argv[1]).num_rows == 320_000_000; "
        "assert main(['layout', sys.argv[1], '-o', sys.argv[2]]) == 0; "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    out = tmp_path / "big.html"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 400_000  # KiB, mostly of Python and pyarrow
    text = out.read_text()
    assert len(text) < 4_000_000
    assert "9.5 GiB" in text
    assert {"c0", "c1", "c2", "c3"} <= set(re.findall(r"<td>(c\d)</td>", text))
    stripes_drawn = [node for node in walk(data_of(text)["tree"]) if node[2] > 8 * rows]
    assert len(stripes_drawn) >= stripes


def pixels(path: Path) -> set[bytes]:
    """The colours of a PNG as Chromium writes it."""
    data, at, packed = path.read_bytes(), 8, b""
    width = height = channels = 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack(">II", body[:8])
            channels = {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    raw, stride = zlib.decompress(packed), width * channels
    seen: set[bytes] = set()
    above = bytearray(stride)
    for row in range(height):
        start = row * (stride + 1)
        line = bytearray(raw[start + 1 : start + 1 + stride])
        _unfilter(raw[start], line, above, channels)
        if row % 8 == 0:
            seen |= {bytes(line[x : x + 3]) for x in range(0, stride, channels * 4)}
        above = line
    return seen


def _unfilter(kind: int, line: bytearray, above: bytearray, step: int) -> None:
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        up, corner = above[i], above[i - step] if i >= step else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            near = min((left, up, corner), key=lambda value: abs(guess - value))
            line[i] = (line[i] + near) & 255


@needs_chromium
def test_a_browser_draws_it(broken: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(cf.open(broken), verify=True))
    lost = cf.open(broken).verify()["damage"][0]["offset"]
    common = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ]
    common += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    common += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=900,1100",
        "--virtual-time-budget=3000",
    ]

    def browser(*arguments: str) -> str:
        done = subprocess.run([*common, *arguments], capture_output=True, text=True, check=True, timeout=120)
        return done.stdout

    # The rendered page is zoomed to the damaged stream, and shows its bytes.
    drawn = browser("--dump-dom", f"{path.as_uri()}#{lost}")
    assert re.search(r'<button type="button">file</button><button [^>]*>stripe \d+</button></nav>', drawn)
    detail = drawn[drawn.index('<div id="detail"') :]
    assert "<dt>damaged</dt>" in detail
    assert re.search(r"<b>[0-9a-f]{8}</b>  ([0-9a-f]{2} ){15}[0-9a-f]{2}  <b>", detail)
    shot = tmp_path / "page.png"
    browser(f"--screenshot={shot}", path.as_uri())
    seen = pixels(shot)
    for colour in ("4477aa", "ccbb44"):  # the two largest columns
        assert bytes.fromhex(colour) in seen
    assert len(seen) > 20
