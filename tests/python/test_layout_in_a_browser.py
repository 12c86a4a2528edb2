"""The layout page in a browser: display, accessibility, keyboard."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from browsing import WIDTHS, Browser

import coldframe as cf
from coldframe.layout import page
from coldframe.layout.colours import Colours, contrast

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of a damaged file, of a Kudu directory, and of many files, two of them damaged."""
    folder = tmp_path_factory.mktemp("pages")
    rows = 100_000
    table = pa.table({"id": range(rows), "customer": [f"customer {i * 7919 % 5000}" for i in range(rows)]})
    cf.write(table, folder / "events.orc", format="orc", codec="zlib", stripe_size=1 << 20)
    damage(folder / "events.orc", 2)

    shutil.copytree(DATA / "kudu" / "files" / "file_blocks", folder / "kudu")
    damage(next((folder / "kudu").rglob("0196962279574308")), 3)

    for number in range(300):
        name = f"year={2000 + number // 12}/month={number % 12 + 1}/part-of-a-long-name-{number:05}.orc"
        (folder / "many" / name).parent.mkdir(parents=True, exist_ok=True)
        cf.write(table.slice(number * 10, 200 + number), folder / "many" / name, format="orc", codec="zlib")
    for name in ("year=2003/month=7", "year=2020/month=1"):
        damage(next((folder / "many" / name).iterdir()), 3)

    sources = {
        "file": cf.open(folder / "events.orc"),
        "kudu": cf.open(folder / "kudu", table="events"),
        "many": cf.scan(folder / "many"),
    }
    for name, source in sources.items():
        (folder / f"{name}.html").write_text(page(source, verify=True))
    return {name: folder / f"{name}.html" for name in sources}


def damage(path: Path, part: int) -> None:
    data = bytearray(path.read_bytes())
    at = len(data) // part
    data[at : at + 20] = bytes(byte ^ 255 for byte in data[at : at + 20])
    path.write_bytes(data)


def test_text_on_colours_has_contrast() -> None:
    rules = [rule.split("{")[1] for rule in Colours.style().replace("{.", "}.").split("}") if "--on" in rule]
    assert len(rules) == 3 * len(Colours.values())
    for rule in rules:
        fill, ink = (part.split(":")[1] for part in rule.split(";"))
        assert contrast(fill, ink) >= 4.5, rule


@pytest.mark.parametrize("name", ["file", "kudu", "many"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_accessibility(browser: Browser, pages: dict[str, Path], name: str, dark: bool, width: int) -> None:
    browser.open(pages[name], width, dark=dark)
    assert browser.problems() == []
    assert browser.overflow() == []
    for _ in range(2):  # as opened, and after moving to the next part
        assert browser.violations() == []
        assert browser.poor_contrasts("#zoom .tile span") == []
        assert browser.overlaps("#zoom .tile span") == []
        assert browser.tab_stops("#zoom") == 1
        browser.evaluate("document.querySelector('#zoom [tabindex=\"0\"]').focus()")
        browser.press("ArrowDown", "Enter")
    assert browser.problems() == []


@pytest.mark.parametrize("name", ["file", "kudu", "many"])
@pytest.mark.parametrize("width", WIDTHS)
def test_page_is_readable_without_scripts(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.open(pages[name], width, scripts=False)
    browser.open(pages[name], width)  # the picture without scripts has no overlapping labels
    assert browser.overflow() == []


CHOSEN = """(() => {
  const tile = document.querySelector("#zoom .chosen");
  return tile && { label: tile.textContent, name: tile.getAttribute("aria-label"), level: tile.ariaLevel,
    selected: tile.ariaSelected, focused: tile === document.activeElement,
    title: document.querySelector("#detail h3").textContent,
    marked: document.querySelectorAll("#position rect").length };
})()"""


def test_arrow_keys_go_from_part_to_part(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["file"], 1400)
    for _ in range(30):
        browser.press("Tab")
        if browser.evaluate("document.activeElement.closest('#zoom') !== null"):
            break
    first = browser.evaluate(CHOSEN)
    assert (first["focused"], first["selected"], first["level"]) == (True, "true", "1")

    browser.press("ArrowDown")
    second = browser.evaluate(CHOSEN)
    assert (second["focused"], second["level"]) == (True, "2")
    assert second["title"] == "stripe 0"
    assert second["marked"] >= 1
    browser.press("ArrowDown", "End")
    third = browser.evaluate(CHOSEN)
    assert third["level"] == "3"
    assert third["name"].startswith(third["title"])
    browser.press("ArrowUp")
    assert browser.evaluate(CHOSEN)["level"] == "2"
    browser.press("Home", "Enter")
    assert browser.evaluate(CHOSEN)["focused"]
    browser.press("Escape")
    assert browser.evaluate(CHOSEN)["title"] == first["title"]
    assert browser.evaluate("document.querySelectorAll('#zoom [aria-selected=true]').length") == 1

    # Tab leaves the picture.
    browser.press("Tab")
    assert not browser.evaluate("document.activeElement.closest('#zoom') !== null")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_of_damage_leads_to_its_part(browser: Browser, pages: dict[str, Path], width: int) -> None:
    browser.open(pages["many"], width)
    browser.evaluate("document.querySelectorAll('section.bad tbody a')[1].focus()")
    browser.press("Enter")
    chosen = browser.evaluate(CHOSEN)
    assert chosen["focused"]
    assert chosen["name"].endswith(", damaged")
    reason = browser.evaluate("document.querySelector('#detail dd.broken').textContent")
    row = browser.evaluate("document.querySelectorAll('section.bad tbody tr')[1].textContent")
    assert reason in row
    shown = browser.evaluate("document.querySelector('#zoom').getBoundingClientRect()['top'] < innerHeight")
    assert shown


def test_a_link_names_a_file_and_an_offset_in_it(browser: Browser, pages: dict[str, Path]) -> None:
    path = next((pages["many"].parent / "many" / "year=2003" / "month=7").iterdir())
    name = f"year=2003/month=7/{path.name}"
    [lost] = cf.open(path).verify()["damage"]
    browser.open(pages["many"], 1400, at=f"#{name}:{lost['offset']}")
    detail = browser.evaluate("document.querySelector('#detail').textContent")
    assert name in detail
    offset = browser.evaluate("document.querySelector('#detail dd:nth-of-type(2)').textContent")
    assert int(offset.split()[0].replace(",", "")) <= lost["offset"] < path.stat().st_size


def test_every_kind_in_the_legend_has_a_name(browser: Browser, pages: dict[str, Path]) -> None:
    for name in pages:
        browser.open(pages[name], 1400)
        entries = browser.evaluate(
            "[...document.querySelectorAll('.legend li')].map((li) => li.childNodes[1].textContent.trim())"
        )
        assert entries
        assert "" not in entries


def test_damage_of_a_directory_names_the_file_and_the_offset_in_it(pages: dict[str, Path]) -> None:
    from test_layout import data_of, walk

    folder = pages["many"].parent / "many"
    text = pages["many"].read_text()
    section = text[text.index('<section class="bad">') : text.index("Every byte, from")]
    for part in ("year=2003/month=7", "year=2020/month=1"):
        [path] = (folder / part).iterdir()
        [lost] = cf.open(path).verify()["damage"]
        numbers = f"<td class=n>{lost['offset']:,}</td><td class=n>{lost['length']:,}</td>"
        assert f"<td>{part}/{path.name}</td>{numbers}" in section
    starts = [node for node in walk(data_of(text)["tree"]) if len(node) > 9]
    assert len(starts) == 300
