"""The tree of a layout, small enough for a page.

    inspect()  a million nodes  ──▶  groups of neighbours  ──▶  the largest and the damaged  ──▶  20,000 nodes

A node with very many parts gets intermediate levels of groups, so that each step of a zoom is visible. Then
nodes are opened, first damaged nodes, then the largest, until there are enough. A closed node states its
number of parts.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_NODES = 20_000
_FANOUT = 200

# Parts without a meaning of their own, which get the kind of their parent.
_FRAMING = frozenset(
    {
        *("header", "data", "checksum", "checksums", "payload", "message", "magic", "length", "fields"),
        *("padding", "version", "page header", "page data"),
    }
)

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """A damaged place. The place's offset is relative to the tree's beginning."""

    offset: int
    length: int
    reason: str


@dataclass
class Spot:
    """A node to be drawn."""

    name: str
    offset: int
    length: int
    kind: str
    """The category in which the node is counted: its column, or its type of structure."""
    detail: dict[str, Any] = field(default_factory=dict)
    children: list[Spot] = field(default_factory=list)
    parts: int = 0
    """The number of nodes below the node in the whole tree; 0 if all are drawn."""
    damage: list[Place] = field(default_factory=list)
    """The damage of this node itself."""
    hurt: bool = False
    """Whether the node or one of its parts is damaged."""
    column: str | None = None
    file: str | None = None
    """The node's local file, if the root is a directory."""
    within: Spot | None = None
    """The node of the file that has this node (possibly itself), if the root has several files."""
    inner: bool = False
    """Whether the node has a parent."""

    @property
    def label(self) -> str:
        """The node's name, with the name of its column if the name does not include it."""
        if not self.column or self.column in self.name or "path" not in self.detail:
            return self.name
        return self.column if self.name.startswith("column") else f"{self.column} {self.name}"

    @property
    def end(self) -> int:
        """The end of the node's bytes."""
        return self.offset + self.length

    @property
    def base(self) -> int:
        """The offset in the tree of the file that has this node: people count offsets from there."""
        return 0 if self.within is None else self.within.offset

    def walk(self) -> Iterator[Spot]:
        """The node and all drawn nodes below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def kind_of(name: str) -> str:
    """A node's name without numbers, quoted names and brackets: `column chunk`, `stripe`.

    For a path: the path's first two names.
    """
    if "/" in name and ": " not in name:
        return "/".join(name.split("/")[:2])
    bare = re.sub(r"`[^`]*`", "", name.split(":")[-1] if ": " in name else name)
    return " ".join(re.sub(r"\b[\d#]+\b|\([^)]*\)", "", bare).split()) or name


def damage_of(node: Tree) -> str | None:
    """The damage that a node of the layout states."""
    reason = node["detail"].get("damaged")
    if reason is not None:
        return str(reason)
    places = node["detail"].get("damaged_places")  # damaged places of parts that have no nodes
    return f"damaged in {places} places" if places else None


def shrunk(tree: Tree, damage: Sequence[Place] = (), limit: int = MAX_NODES) -> Spot:
    """The tree with about `limit` nodes at most."""
    marks = sorted(damage, key=lambda place: place.offset)
    root = _shut(tree, None, marks)
    waiting = [(not root.hurt, -root.length, 0, root, tree)]
    nodes, order = 1, 1
    while waiting and nodes < limit:
        _, _, _, spot, node = heapq.heappop(waiting)
        children = node["children"]
        if not children:
            continue
        spot.children = []
        for child in _grouped(children):
            inner = _shut(child, spot, marks)
            spot.children.append(inner)
            nodes += 1
            if child["children"]:
                heapq.heappush(waiting, (not inner.hurt, -inner.length, order, inner, child))
                order += 1
        spot.parts = 0
    _settle(root, marks)
    return root


def _shut(node: Tree, parent: Spot | None, marks: Sequence[Place]) -> Spot:
    spot = Spot(node["name"], node["offset"], node["length"], kind_of(node["name"]), dict(node["detail"]))
    if spot.kind in _FRAMING and parent is not None and parent.inner:
        spot.kind = parent.kind
    spot.inner = parent is not None
    spot.file = node.get("file") or (parent.file if parent is not None else None)
    spot.within = spot if node.get("is_file") else parent.within if parent is not None else None
    if spot.within is spot and node["children"]:
        spot.kind = "file"  # the kind of the bytes outside of its parts
    path = spot.detail.get("path")
    spot.column = path if isinstance(path, str) else parent.column if parent is not None else None
    if spot.column:  # the root column's name is empty, and it keeps its kind
        spot.kind = spot.column
    spot.parts, broken = _weighed(node)
    own = damage_of(node)
    spot.damage = [Place(spot.offset, spot.length, own)] if own is not None else []
    spot.hurt = broken or any(_overlap(spot, mark) for mark in marks)
    return spot


def _weighed(node: Tree) -> tuple[int, bool]:
    """The number of nodes below a node, and whether the node or a node below it is damaged. Cached in the
    node.
    """
    known = node.get("_weighed")
    if known is not None:
        return known  # type: ignore[no-any-return]
    parts, broken = 0, damage_of(node) is not None
    for child in node["children"]:
        inner, hurt = _weighed(child)
        parts += 1 + inner
        broken = broken or hurt
    node["_weighed"] = (parts, broken)  # type: ignore[index]
    return parts, broken


def _overlap(spot: Spot, mark: Place) -> bool:
    return spot.offset < mark.offset + max(1, mark.length) and mark.offset < spot.end


def _grouped(children: Sequence[Tree]) -> Sequence[Tree]:
    """Combines neighbours until there are few enough."""
    while len(children) > _FANOUT:
        size = max(2, -(-len(children) // _FANOUT))
        children = [_group(children[at : at + size]) for at in range(0, len(children), size)]
    return children


def _group(members: Sequence[Tree]) -> Tree:
    if len(members) == 1:
        return members[0]
    first, last = members[0], members[-1]
    names = (_ends(first)[0], _ends(last)[1])
    kinds = {kind_of(name) for name in names}
    name = (
        f"{names[0]} … {names[1]}"
        if len(kinds) > 1 or names[0] != names[1]
        else f"{names[0]}, {len(members)} of them"
    )
    rows = [member["detail"].get("rows") for member in members]
    detail = {"rows": sum(rows)} if rows and all(isinstance(n, int) for n in rows) else {}
    return {
        "name": name,
        "offset": first["offset"],
        "length": last["offset"] + last["length"] - first["offset"],
        "detail": detail,
        "children": list(members),
        "_ends": (names[0], names[1]),
    }


def _ends(node: Tree) -> tuple[str, str]:
    return node.get("_ends") or (node["name"], node["name"])


def _settle(root: Spot, marks: Sequence[Place]) -> None:
    """Assigns each mark to the smallest drawn node that contains all of it."""
    for mark in marks:
        spot = root
        while True:
            inner = [
                c
                for c in spot.children
                if c.offset <= mark.offset and mark.offset + max(1, mark.length) <= c.end
            ]
            if not inner:
                break
            spot = inner[0]
        if all(mark.reason != known.reason for known in spot.damage):
            spot.damage.append(mark)


def leaves(root: Spot) -> Iterator[tuple[int, int, Spot]]:
    """The bytes in order, each with the smallest drawn node that contains it: offset, length, node."""
    at = root.offset
    for child in root.children:
        if child.offset > at:
            yield at, child.offset - at, root
        yield from leaves(child)
        at = max(at, child.end)
    if root.end > at:
        yield at, root.end - at, root
