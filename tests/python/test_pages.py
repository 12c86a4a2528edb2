"""What README and docs show is what happens; what they link to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import NO_CODE, PAGES, ROOT, RUNNABLE, alike, blocks, needs_spark, run_page


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


# What a page only shows, with its reason beside it. One more is a decision.
NOT_RUN = {
    "README.md": 2,
    "adding-a-format.md": 3,
    "catalogs.md": 3,
    "hive-metastore.md": 7,
    "index.md": 3,
    "logging.md": 1,
    "migration.md": 2,
    "safe-to-delete.md": 1,
    "spark.md": 8,
    "stores.md": 3,
}


def test_no_block_is_left_out_in_silence() -> None:
    """A block without a language, or in one that nobody runs, would look as if it had been tested."""
    shown: dict[str, int] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        opened = re.findall(r"^ *(?:```|~~~)(.*)$", text, re.MULTILINE)
        languages, ends = opened[::2], opened[1::2]
        assert not any(ends), f"{page.name}: a block is not closed: {opened}"
        assert len(languages) == len(ends), f"{page.name}: a block is not closed"
        assert set(languages) <= RUNNABLE | NO_CODE | {"rust", "sql"}, page.name
        found = [block for block in blocks(page) if not block.is_setup]
        assert [block.language for block in found] == [one for one in languages if one not in NO_CODE]
        if left := sum(1 for block in found if block.not_run is not None):
            shown[page.name] = left
    assert shown == NOT_RUN
    assert len(PAGES) > 15


def test_output_is_shown_of_most_that_is_run() -> None:
    """Code alone proves that nothing raises; what stands behind `#>` and commands is compared."""
    silent = []
    for page in PAGES:
        ran = [b for b in blocks(page) if b.not_run is None and not b.is_setup and b.language != "toml"]
        if ran and not any("#>" in block.code or block.language == "console" for block in ran):
            silent.append(page.name)
    assert silent == []


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
