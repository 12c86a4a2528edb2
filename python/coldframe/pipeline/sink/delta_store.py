"""Store options for deltalake: the same credentials under its names."""

from __future__ import annotations

from coldframe import _coldframe
from coldframe.pipeline.sink.destination import Destination
from coldframe.sources import is_remote, scheme_of, text_options

_PREFIXES = {"s3": "aws_", "gs": "google_", "az": "azure_"}
_KINDS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("hdfs", "viewfs"), "hdfs"),
}
# Options that only coldframe has.
_OURS = frozenset(("copy_if_not_exists", "max_retries", "retry_timeout", "profile"))
_PLAIN = frozenset(("allow_http", "allow_invalid_certificates", "proxy_url", "timeout", "connect_timeout"))


def delta_options(destination: Destination) -> dict[str, str] | None:
    """The storage options of deltalake, which also reads settings from the environment."""
    if not is_remote(destination.root):
        return None
    given = text_options(destination.storage_options)
    options = _coldframe.resolved_options(destination.root, given)
    kind = _KINDS.get(str(scheme_of(destination.root)), "az")
    translated: dict[str, str] = {}
    for name, value in options.items():
        if name in _OURS:
            continue
        if name in ("timeout", "connect_timeout") and value.replace(".", "", 1).isdigit():
            value = f"{value}s"
        translated[name if name in _PLAIN or kind == "hdfs" else _PREFIXES[kind] + name] = value
    return translated
