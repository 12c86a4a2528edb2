"""Refusals of a metastore: of a request, or to describe a table."""

from __future__ import annotations

from dataclasses import dataclass

from coldframe._coldframe import ColdframeError


class MetastoreRefusal(ColdframeError):
    """The metastore works, but refuses the request."""


@dataclass(frozen=True)
class Refused:
    """A table that the metastore refuses to describe."""

    database: str
    name: str
    reason: str
