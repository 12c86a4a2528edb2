"""The layout of files as a page."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import coldframe as cf
from coldframe.cli import main
from coldframe.layout import page
from coldframe.layout.model import Place, Spot, kind_of, shrunk
from coldframe.layout.page import _data

DATA = Path(__file__).parents[1] / "data"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


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
    """Looks for what a browser would fetch, and whether tags match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]
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
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_the_page_is_whole_without_scripts(orc: Path) -> None:
    text = page(cf.open(orc))
    reader = read(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    assert reader.counts["svg"] == 2
    assert "Layout of rows &amp; columns.orc" in text
    assert "200,000" in text
    assert "No damage (by its structure alone)" in text
    for column in ("id", "customer", "amount"):
        assert f"<td>{column}</td>" in text
    assert len(text) < 500_000


def test_the_data_has_every_byte_its_statistics_and_where_it_begins(orc: Path) -> None:
    found = data_of(page(cf.open(orc)))
    raw = orc.read_bytes()

    def leaves(node: list[Any]) -> list[list[Any]]:
        return [leaf for child in node[8] for leaf in leaves(child)] if node[8] else [node]

    at = 0
    for leaf in leaves(found["tree"]):
        assert leaf[1] == at
        at += leaf[2]
        sample = base64.b64decode(leaf[7])
        assert sample == raw[leaf[1] : leaf[1] + len(sample)]
        assert len(sample) == min(512, leaf[2])
    assert at == len(raw)
    said = [found["details"][leaf[4]] for leaf in leaves(found["tree"]) if leaf[4] >= 0]
    amounts = [one for one in said if one.get("path") == "amount" and "encoding" in one]
    assert amounts
    assert all({"min", "max", "has_null"} <= one.keys() for one in amounts)


def test_damage_is_marked_where_it_is(broken: Path) -> None:
    text = page(cf.open(broken), verify=True)
    read(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    assert "Damaged in 1 place" in text
    assert 'class="broken"' in text
    lost = cf.open(broken).verify()["damage"][0]
    found = data_of(text)

    def marked(node: list[Any]) -> list[list[Any]]:
        return [node] * (node[5] >= 0) + [one for child in node[8] for one in marked(child)]

    [node] = marked(found["tree"])
    assert node[1] <= lost["offset"] < node[1] + node[2]
    assert lost["reason"] in found["texts"][node[5]]


def tree_of(units: int, streams: int) -> dict[str, Any]:
    """The layout of a very large file."""

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


def test_a_page_stays_small_whatever_the_file() -> None:
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
    from coldframe.layout.drawing import Colours, icicle, strip
    from coldframe.layout.sources import Bytes

    colours = Colours(root)
    assert len(_data(root, colours, Bytes(None, {}))) < 4_000_000
    assert len(strip(root, colours)) < 2_000_000
    assert len(icicle(root, colours)) < 1_000_000


def test_names_tell_kinds() -> None:
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
            continue  # that needs a schema or a key
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
    found = data_of(text)
    assert len(found["tree"][8]) == 3
    assert found["tree"][2] == sum(path.stat().st_size for path in (tmp_path / "t").rglob("*.orc"))
    assert "<td>x</td>" in text


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


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: the page was not looked at")
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

    # What the scripts made of the page: zoomed to the damaged stream, with its bytes.
    drawn = browser("--dump-dom", f"{path.as_uri()}#{lost}")
    assert re.search(r'<nav id="crumbs"><button>file</button><button>stripe \d+</button></nav>', drawn)
    detail = drawn[drawn.index('<div id="detail">') :]
    assert "<dt>damaged</dt>" in detail
    assert re.search(r"<b>[0-9a-f]{8}</b>  ([0-9a-f]{2} ){15}[0-9a-f]{2}  <b>", detail)
    shot = tmp_path / "page.png"
    browser(f"--screenshot={shot}", path.as_uri())
    seen = pixels(shot)
    for colour in ("4477aa", "ccbb44"):  # the two columns that take most
        assert bytes.fromhex(colour) in seen
    assert len(seen) > 20
