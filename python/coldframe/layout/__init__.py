"""A file's bytes as a page: what lies where, how big it is, what it says of itself, what is broken.

    from coldframe.layout import page

    Path("events.html").write_text(page(cf.open("events.orc")), encoding="utf-8")

The page needs nothing from elsewhere. Its overview is drawn without scripts; with them, one zooms from the
file to a block and its bytes. Its size is bounded, whatever the file's: what is too small or too much to be
shown apart is shown together, and what is damaged is always shown.
"""

from __future__ import annotations

from coldframe.layout.page import page

__all__ = ["page"]
