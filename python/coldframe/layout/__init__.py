"""A file's bytes as a page: what is where, its size, the file's metadata, and what is damaged.

    from coldframe.layout import page

    Path("events.html").write_text(page(cf.open("events.orc")), encoding="utf-8")

The page loads nothing from elsewhere. Its overview is drawn without scripts; with them, one can zoom from the
file to a block and its bytes. Its size is bounded, whatever the file's: parts that are too small or too many
are shown together, and damage is always shown.
"""

from __future__ import annotations

from coldframe.layout.page import page

__all__ = ["page"]
