"""The check of Python's layers: faults that it must report, and code that it must accept."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("rooms", ROOT / "tests" / "lint" / "rooms.py")
assert spec is not None
assert spec.loader is not None
rooms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rooms)

PIPELINE = "python/coldframe/pipeline/"


def faults(root, files):
    """The faults in a tree of these files, except reports of needless exceptions."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    reports = [*rooms.upward(root), *rooms.dictionaries(root), *rooms.formats(root), *rooms.sizes(root)]
    return [report for report in reports if "take it off" not in report]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"source/a.py": "from coldframe.pipeline.work.b import B", "work/b.py": "B = 1"},
            "source/a.py:1: imports work.b, which is in a higher room",
        ),
        (
            {"plan/a.py": "def f():\n    from coldframe.pipeline.report import pages", "report/pages.py": ""},
            "plan/a.py:2: imports report.pages, which is in a higher room",
        ),
        ({"work/a.py": "import coldframe.cli.options"}, "work/a.py:1: imports coldframe.cli.options"),
        ({"attic/a.py": ""}, "attic/a.py: has no place in the order of rooms"),
        ({"plan/a.py": "def f(x: list[dict[str, Any]]): ..."}, "plan/a.py:1: dict[str, Any]"),
        ({"plan/a.py": "if kind == 'orc': ..."}, 'plan/a.py:1: "orc": ask the format'),
        ({"plan/a.py": "x = 1\n" * 601}, "plan/a.py: 601 lines"),
    ],
)
def test_faults_are_reported(tmp_path, files, expected):
    (fault,) = faults(tmp_path, {PIPELINE + name: text for name, text in files.items()})
    assert expected in fault


@pytest.mark.parametrize(
    "files",
    [
        {"work/a.py": "from coldframe.pipeline.plan.b import B", "plan/b.py": "B = 1"},
        {"plan/a.py": "from coldframe.pipeline.report.model import M", "report/model.py": "M = 1"},
        {"options.py": "from coldframe.pipeline.source.selection import S", "source/selection.py": "S = 1"},
        {"__main__.py": "from coldframe.cli.migrate import run"},
        {"source/tables.py": "X = dict[str, Any]"},
        {"plan/a.py": '''"""Of `"orc"` files."""'''},
    ],
)
def test_correct_code_is_accepted(tmp_path, files):
    assert not faults(tmp_path, {PIPELINE + name: text for name, text in files.items()})


def test_needless_exception_is_reported(tmp_path):
    (tmp_path / "python").mkdir()
    assert any("source/tables.py has no dict" in report for report in rooms.dictionaries(tmp_path))


def test_this_tree_has_no_faults(capsys):
    assert rooms.main(ROOT) == 0, capsys.readouterr().out
