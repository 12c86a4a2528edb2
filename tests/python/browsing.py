"""Opens pages in a browser: at several widths, in dark mode, with the keyboard alone.

    python  ──lines of JSON──▶  node tests/browser/drive.cjs  ──▶  playwright-core  ──▶  Chromium, headless

The npm packages are installed once, below `target/browser`. Without node, npm or Chromium the tests are
skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "tests" / "browser"
TOOLS = ROOT / "target" / "browser"

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = (400, 1400)

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: the page was not looked at")


def missing() -> str | None:
    """Why no browser can start, or None. Installs the npm packages."""
    absent = [name for name in ("node", "npm") if shutil.which(name) is None]
    if CHROMIUM is None:
        absent.append("chromium")
    if absent:
        return f"pages were not looked at: there is no {', no '.join(absent)}"
    wanted = (DRIVER / "package.json").read_text()
    installed = TOOLS / "package.json"
    if installed.is_file() and installed.read_text() == wanted:
        return None
    TOOLS.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", *_versions(wanted)],
        cwd=TOOLS,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        return f"pages were not looked at: npm could not install playwright-core and axe-core: {reason}"
    installed.write_text(wanted)
    return None


def _versions(package: str) -> list[str]:
    return [f"{name}@{version}" for name, version in json.loads(package)["dependencies"].items()]


class Browser:
    """A page in Chromium, offline, so that a page that loads anything else fails."""

    def __init__(self, driver: subprocess.Popen[str]) -> None:
        self._driver = driver

    def _do(self, action: str, **given: Any) -> Any:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.write(json.dumps({"action": action, **given}) + "\n")
        self._driver.stdin.flush()
        answer = json.loads(self._driver.stdout.readline() or '{"error": "the driver is gone"}')
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def open(
        self, page: Path | str, width: int, *, dark: bool = False, scripts: bool = True, at: str = ""
    ) -> float:
        """Opens a page, with `at` appended to its URL.

        Returns the processor time that this took, in milliseconds.
        """
        url = (page.as_uri() if isinstance(page, Path) else page) + at
        return float(self._do("open", url=url, width=width, dark=dark, scripts=scripts)["milliseconds"])

    def violations(self) -> list[dict[str, Any]]:
        """The accessibility violations that axe-core reports."""
        violations: list[dict[str, Any]] = self._do("axe")
        return violations

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        return self._do("evaluate", script=script)

    def press(self, *keys: str) -> None:
        for key in keys:
            self._do("press", key=key)

    def type(self, text: str) -> None:
        self._do("type", text=text)

    def click(self, selector: str) -> None:
        self._do("click", selector=selector)

    def screenshot(self, path: Path, *, full: bool = True) -> None:
        """The page as a PNG; without `full`, only the visible part."""
        self._do("screenshot", path=str(path), full=full)

    def problems(self) -> list[str]:
        """Errors of the page's scripts."""
        problems: list[str] = self._do("problems")
        return problems

    # Checks that the tests of all pages use.

    def overflow(self) -> list[str]:
        """Elements that make the page wider than the window."""
        return list(self.evaluate(_OVERFLOW))

    def poor_contrasts(self, selector: str) -> list[str]:
        """Texts of elements whose contrast with their background is below WCAG AA."""
        return list(self.evaluate(_CONTRASTS.replace("SELECTOR", json.dumps(selector))))

    def overlaps(self, selector: str) -> list[str]:
        """Pairs of elements that overlap."""
        return list(self.evaluate(_OVERLAPS.replace("SELECTOR", json.dumps(selector))))

    def tab_stops(self, within: str) -> int:
        """The number of elements to which the tab key leads."""
        selector = json.dumps(f'{within} [tabindex="0"]')
        return int(self.evaluate(f"document.querySelectorAll({selector}).length"))


@contextmanager
def started() -> Iterator[Browser]:
    """A browser, closed at the end of the block."""
    with subprocess.Popen(
        ["node", str(DRIVER / "drive.cjs"), str(TOOLS), str(CHROMIUM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        yield Browser(driver)
        assert driver.stdin is not None
        driver.stdin.close()


_OVERFLOW = """(() => {
  if (document.documentElement.scrollWidth <= document.documentElement.clientWidth) return [];
  return [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((element) => element.outerHTML.slice(0, 120)).slice(0, 10);
})()"""

_CONTRASTS = """(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (value) => value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at), colour = numbers(style.backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll(SELECTOR)) {
    const [a, b] = [luminance(numbers(getComputedStyle(element).color)), luminance(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) poor.push(`${contrast.toFixed(2)}: ${element.textContent}`);
  }
  return poor;
})()"""

_OVERLAPS = """(() => {
  const found = [], rows = new Map();
  for (const element of document.querySelectorAll(SELECTOR)) {
    const box = element.getBoundingClientRect(), row = Math.round(box.top);
    rows.set(row, [...(rows.get(row) || []), [box.left, box.right, element.textContent]]);
  }
  for (const row of rows.values()) {
    row.sort((a, b) => a[0] - b[0]);
    for (let at = 1; at < row.length; at += 1)
      if (row[at][0] < row[at - 1][1] - 0.5) found.push(`${row[at - 1][2]} | ${row[at][2]}`);
  }
  return found;
})()"""
