"""Pages: whatever a name says, it stays a text, and only the page's own script runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from estates import Estate

import coldframe as cf
from coldframe.html_page import html_page, json_for_html
from coldframe.layout.page import page
from coldframe.notebook import summary_html
from coldframe.pipeline.report import figures

NAMES = [
    "<!--<script>",
    "</script><script>alert(1)</script>",
    "</SCRIPT ><img src=x onerror=alert(1)>",
    "</title><b>",
    "]]>&amp;&lt;\u2028\u2029",
    "\"'><i onclick='x'>",
]


class Page(HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.policy = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.attributes |= set(given)
        if tag == "script":
            self.scripts.append((given, ""))
        if tag == "meta" and given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and self.scripts:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data


def check(text: str) -> Page:
    """Asserts that a page has its own script alone, and a policy that allows that script."""
    parsed = Page(text)
    own = [script for attributes, script in parsed.scripts if "type" not in attributes]
    assert len(own) == 1
    digest = base64.b64encode(hashlib.sha256(own[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in parsed.policy
    assert "default-src 'none'" in parsed.policy
    assert "unsafe-eval" not in parsed.policy
    # The policy comes before everything that it forbids.
    assert text.index("Content-Security-Policy") < min(text.index("<style"), text.index("<script"))
    assert not any(name.startswith("on") for name in parsed.attributes)
    assert not {"img", "iframe", "link", "object"} & set(parsed.tags)
    for attributes, script in parsed.scripts:
        if attributes.get("type") == "application/json":
            assert not re.search("[<>&\u2028\u2029]", script)
            json.loads(script)
    return parsed


@pytest.mark.parametrize("name", NAMES)
def test_json_in_a_page_has_no_html(name: str) -> None:
    text = json_for_html({name: [name]})
    assert json.loads(text) == {name: [name]}
    assert not re.search("[<>&\u2028\u2029]", text)
    check(html_page(name, f'<script type="application/json">{text}</script>', style="", script="1"))


@pytest.mark.parametrize("name", NAMES)
def test_layout_pages(tmp_path: Path, name: str) -> None:
    cf.write(pa.table({name: [1, 2, 3]}), tmp_path / "x.orc")
    parsed = check(page(cf.open(tmp_path / "x.orc"), verify=True))
    data = json.loads(next(text for attributes, text in parsed.scripts if attributes.get("id") == "data"))
    assert name in json.dumps(data, ensure_ascii=False) or json.dumps(name)[1:-1] in json.dumps(data)


def test_report_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "DRAWN_ROWS", 1)
    estate = Estate(tmp_path)
    evil = "<!--<script>&\u2028"
    for number in range(3):
        estate.orc(f"t{evil}/{evil}{number}", {f"a{evil}": [number]})
    broken = estate.orc(f"t{evil}/{evil}9", {f"a{evil}": [9]})
    broken.write_bytes(broken.read_bytes()[:-9])
    estate.migrate(on_error="quarantine")
    pages = list((estate.target / "_coldframe").rglob("*.html"))
    assert len(pages) == 2
    for path in pages:
        check(path.read_text())
    assert any('<script type="application/json">' in path.read_text() for path in pages)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_views(name: str) -> None:
    parsed = Page(summary_html(name, [(name, name)], pa.schema([(name, pa.int8())]), []))
    known = ["div", "p", "code", "br", "b", "table", "thead", "tbody", "tr", "th", "td"]
    assert {tag.lstrip("/") for tag in parsed.tags} <= set(known)
