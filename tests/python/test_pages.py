"""The code of README and docs gives the output that they show, and their links work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import NO_CODE, PAGES, ROOT, RUNNABLE, alike, blocks, needs_spark, run_page


@pytest.mark.parametrize(
    "page", [page for page in PAGES if not needs_spark(page)], ids=lambda page: page.name
)
def test_code_of_a_page_gives_the_output_that_the_page_shows(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def test_differing_output_fails(tmp_path: Path) -> None:
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


# The number of blocks per page that do not run; each such block states its reason.
NOT_RUN = {
    "README.md": 2,
    "adding-a-format.md": 3,
    "adopting.md": 2,
    "catalogs.md": 3,
    "hive-metastore.md": 7,
    "index.md": 3,
    "logging.md": 1,
    "migration.md": 2,
    "safe-to-delete.md": 1,
    "spark.md": 9,
    "stores.md": 3,
}


def test_every_block_runs_or_is_listed() -> None:
    """A block without a language, or in an unknown language, would look tested without being tested."""
    shown: dict[str, int] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        opened = re.findall(r"^ *(?:```|~~~)(.*)$", text, re.MULTILINE)
        languages, ends = opened[::2], opened[1::2]
        assert not any(ends), f"{page.name}: a block is not closed: {opened}"
        assert len(languages) == len(ends), f"{page.name}: a block is not closed"
        assert set(languages) <= RUNNABLE | NO_CODE | {"rust", "sql"}, page.name
        runnable = [block for block in blocks(page) if not block.is_setup]
        assert [block.language for block in runnable] == [
            language for language in languages if language not in NO_CODE
        ]
        if left := sum(1 for block in runnable if block.not_run is not None):
            shown[page.name] = left
    assert shown == NOT_RUN
    assert len(PAGES) > 15


def test_most_blocks_show_output() -> None:
    """Code without output only shows that nothing raises; outputs after `#>` and commands are compared."""
    silent = []
    for page in PAGES:
        ran = [b for b in blocks(page) if b.not_run is None and not b.is_setup and b.language != "toml"]
        if ran and not any("#>" in block.code or block.language == "console" for block in ran):
            silent.append(page.name)
    assert silent == []


_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and MkDocs derive them from headings."""
    names = set()
    for title in re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    ):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title)
        names.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return names


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue  # an external link
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name}: {link}: {sorted(anchors(target))}"
