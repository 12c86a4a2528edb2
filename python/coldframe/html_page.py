"""HTML pages that run their own script and nothing else, whatever the texts in them say."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from typing import Any

# `</script>` ends a script, and `<!--<script>` hides its end. Older browsers end lines of a script at U+2028.
_UNSAFE = re.compile("[<>&\u2028\u2029]")


def json_for_html(value: Any) -> str:
    """The value as JSON for the content of a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def html_page(title: str, body: str, *, style: str, script: str, generator: str = "") -> str:
    """A page. `body` is HTML, `title` is text.

    The policy of the page forbids all scripts except this script. Nothing is loaded or sent.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    made_by = f'\n<meta name="generator" content="{escape(generator)}">' if generator else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">{made_by}
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""
