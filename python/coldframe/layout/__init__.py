"""A file's bytes as a page: the position and size of each part, the metadata, and the damage.

    from coldframe.layout import page

    Path("events.html").write_text(page(cf.open("events.orc")), encoding="utf-8")

The page loads nothing else. The overview needs no scripts; with scripts, one can zoom from the file to a
block and its bytes. The page's size is limited: parts that are too small or too many are combined, and damage
is always shown.
"""

from __future__ import annotations

from coldframe.layout.page import page

__all__ = ["page"]
