"""What README and docs show is what happens; what they link to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PAGES, ROOT, alike, blocks, needs_spark, run_page


@pytest.mark.parametrize(
    "page", [page for page in PAGES if not needs_spark(page)], ids=lambda page: page.name
)
def test_code_of_a_page(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def test_output_that_differs_is_seen(tmp_path: Path) -> None:
    for number, (text, right) in enumerate(
        [
            ("```python\n1 + 1\n#> 2\n```\n", True),
            ("```python\n1 + 1\n#> 3\n```\n", False),
            ("```python\nx = [1,\n  2]\nprint(x)\n#> [1,  ...]\n```\n", True),
            ("```python\n1 / 0\n#> ZeroDivisionError: division by zero\n```\n", True),
            ("```python\n1 / 0\n```\n", False),
            ("```console\n$ echo a; echo b\na\nb\n```\n", True),
            ("```console\n$ echo a\nb\n```\n", False),
            ("```console\n$ false\n[exit 1]\n```\n", True),
            ("```sh\nfalse\n```\n", False),
            ("```toml\na = \n```\n", False),
            ("<!-- setup\nx = 7\n-->\n```python\nx\n#> 7\n```\n", True),
            ("```rust\nfn main() {}\n```\n", False),
            ("<!-- not run: Rust -->\n```rust\nfn main() {}\n```\n", True),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        page = tmp_path / f"{number}.md"
        page.write_text(text)
        if right:
            run_page(page, folder)
        else:
            with pytest.raises(AssertionError):
                run_page(page, folder)
    assert alike("5 rows in ... s", "5 rows\nin 1.5 s")
    assert not alike("5 rows", "50 rows")


def test_every_page_was_looked_through() -> None:
    assert len(PAGES) > 10
    assert sum(1 for page in PAGES for _ in blocks(page)) > 20


_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The places of a page that links can name, as GitHub and MkDocs make them of headings."""
    found = set()
    for title in re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    ):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue  # of another house
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name}: {link}: {sorted(anchors(target))}"
