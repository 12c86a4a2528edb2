"""A SQL-like condition as a filter: `dt >= '2014-01-01' and (x in (1, 2) or s is not null) and not b`.

    or      := and { OR and }
    and     := not { AND not }
    not     := NOT not | test
    test    := '(' or ')' | TRUE | FALSE | NULL
             | column [ compare value | [NOT] IN '(' value {',' value} ')' | [NOT] BETWEEN value AND value
                      | [NOT] LIKE 'pattern' | IS [NOT] NULL | IS [NOT] TRUE | IS [NOT] FALSE ]
             | value compare column
    value   := number | 'text' | DATE 'text' | TIMESTAMP 'text' | X'hex' | TRUE | FALSE | NULL
    column  := name { '.' name }, where a name may stand in `back quotes` or "double quotes"

Names of columns match whatever their case, as in Spark, unless two differ only in that.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from dataclasses import dataclass
from typing import Any

from coldframe.errors import unsupported
from coldframe.filters import And, Compare, Constant, In, IsNull, Like, Node, Not, Or

__all__ = ["parse_sql"]

_TOKEN = re.compile(
    r"""
      (?P<space>  \s+ )
    | (?P<number> (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![A-Za-z_0-9]) )
    | (?P<hex>    [xX]'(?:[0-9A-Fa-f]{2})*' )
    | (?P<text>   '(?:[^']|'')*' )
    | (?P<quoted> `(?:[^`]|``)+` | "(?:[^"]|"")+" )
    | (?P<name>   [^\W\d]\w* )
    | (?P<sign>   <=|>=|<>|!=|==|=|<|>|\(|\)|,|\.|-|\+ )
    """,
    re.VERBOSE,
)

_COMPARISONS = {"=": "=", "==": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MAX_DEPTH = 100


@dataclass(frozen=True)
class _Token:
    kind: str  # number, hex, text, quoted, name, sign, end
    text: str
    at: int

    def is_word(self, word: str) -> bool:
        return self.kind == "name" and self.text.lower() == word

    def is_sign(self, sign: str) -> bool:
        return self.kind == "sign" and self.text == sign


@dataclass(frozen=True)
class _Literal:
    value: Any


def parse_sql(text: str) -> Node:
    """The filter that a condition means. A mistake raises ValueError with its place."""
    parser = _Parser(text)
    node = parser.any_of(0)
    if parser.token.kind != "end":
        raise parser.error("the end of the condition")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokenise(text)
        self._at = 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._at]

    def next(self) -> _Token:
        token = self.token
        if token.kind != "end":
            self._at += 1
        return token

    def accept_word(self, *words: str) -> bool:
        """Takes the words where all of them follow, else nothing."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if len(ahead) == len(words) and all(
            token.is_word(word) for token, word in zip(ahead, words, strict=True)
        ):
            self._at += len(words)
            return True
        return False

    def accept_sign(self, sign: str) -> bool:
        if self.token.is_sign(sign):
            self._at += 1
            return True
        return False

    def expect_sign(self, sign: str) -> None:
        if not self.accept_sign(sign):
            raise self.error(repr(sign))

    def error(self, expected: str) -> ValueError:
        token = self.token
        found = "the end" if token.kind == "end" else repr(token.text)
        return ValueError(
            f"filter {self._text!r}, position {token.at + 1}: expected {expected}, found {found}"
        )

    def any_of(self, depth: int) -> Node:
        parts = [self.all_of(depth)]
        while self.accept_word("or"):
            parts.append(self.all_of(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def all_of(self, depth: int) -> Node:
        parts = [self.negation(depth)]
        while self.accept_word("and"):
            parts.append(self.negation(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def negation(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise ValueError(f"filter nested deeper than {_MAX_DEPTH}")
        if self.accept_word("not"):
            return Not(self.negation(depth + 1))
        return self.test(depth)

    def test(self, depth: int) -> Node:
        if self.accept_sign("("):
            inner = self.any_of(depth + 1)
            self.expect_sign(")")
            return inner
        literal = self.literal()
        if literal is not None:
            return self.literal_first(literal)
        column = self.column()
        if self.token.is_sign("("):
            raise unsupported(f"filter {self._text!r}: function {column}()")
        if self.token.kind == "sign" and self.token.text in _COMPARISONS:
            op = _COMPARISONS[self.next().text]
            return Compare(column, op, self.value().value)
        if self.accept_word("is"):
            return self.is_test(column)
        negated = self.accept_word("not")
        node = self.range_test(column)
        if node is None:
            if negated:
                raise self.error("in, between or like")
            return Compare(column, "=", True)  # a column of truth values by itself
        return Not(node) if negated else node

    def literal_first(self, literal: _Literal) -> Node:
        if self.token.kind == "sign" and self.token.text in _COMPARISONS:
            op = _FLIPPED[_COMPARISONS[self.next().text]]
            if self.literal() is not None:
                raise unsupported(f"filter {self._text!r}: a comparison without a column")
            return Compare(self.column(), op, literal.value)
        if literal.value is None or isinstance(literal.value, bool):
            return Constant(literal.value)
        raise self.error("a comparison")

    def is_test(self, column: str) -> Node:
        negated = self.accept_word("not")
        if self.accept_word("null"):
            node: Node = IsNull(column)
        elif self.token.is_word("true") or self.token.is_word("false"):
            wanted = self.next().text.lower() == "true"
            # `is true` is never unknown, unlike `= true`
            node = And((Not(IsNull(column)), Compare(column, "=", wanted)))
        else:
            raise self.error("null, true or false")
        return Not(node) if negated else node

    def range_test(self, column: str) -> Node | None:
        if self.accept_word("in"):
            self.expect_sign("(")
            values = [self.value().value]
            while self.accept_sign(","):
                values.append(self.value().value)
            self.expect_sign(")")
            present = In(column, tuple(v for v in values if v is not None))
            return present if None not in values else Or((present, Constant(None)))
        if self.accept_word("between"):
            low = self.value().value
            if not self.accept_word("and"):
                raise self.error("and")
            return And((Compare(column, ">=", low), Compare(column, "<=", self.value().value)))
        if self.accept_word("like"):
            token = self.next()
            if token.kind != "text":
                self._at -= 1
                raise self.error("a pattern in single quotes")
            return Like(column, _unquote(token.text))
        return None

    def value(self) -> _Literal:
        literal = self.literal()
        if literal is None:
            if self.token.kind in ("name", "quoted"):
                raise unsupported(
                    f"filter {self._text!r}: comparison with {self.token.text!r}, which is not a literal"
                )
            raise self.error("a literal")
        return literal

    def literal(self) -> _Literal | None:
        """Takes a literal where one follows."""
        token = self.token
        following = self._tokens[self._at + 1] if token.kind != "end" else token
        if token.kind == "sign" and token.text in "+-" and following.kind == "number":
            self._at += 2
            value = _number(following.text)
            return _Literal(-value if token.text == "-" else value)
        if token.kind == "number":
            self._at += 1
            return _Literal(_number(token.text))
        if token.kind == "text":
            self._at += 1
            return _Literal(_unquote(token.text))
        if token.kind == "hex":
            self._at += 1
            return _Literal(bytes.fromhex(token.text[2:-1]))
        if token.kind == "name":
            word = token.text.lower()
            if word in ("true", "false", "null"):
                self._at += 1
                return _Literal({"true": True, "false": False, "null": None}[word])
            if word in ("date", "timestamp") and following.kind == "text":
                self._at += 2
                return _Literal(self.instant(word, _unquote(following.text)))
        return None

    def instant(self, kind: str, text: str) -> object:
        if kind == "date":
            try:
                return dt.date.fromisoformat(text.strip())
            except ValueError as reason:
                raise ValueError(f"filter {self._text!r}: {text!r} is not a date (yyyy-mm-dd)") from reason
        return text  # kept as text: it may have nanoseconds, and only the column says whether it has a zone

    def column(self) -> str:
        parts = [self.name()]
        while self.accept_sign("."):
            parts.append(self.name())
        return ".".join(parts)

    def name(self) -> str:
        token = self.token
        if token.kind == "quoted":
            self._at += 1
            quote = token.text[0]
            return token.text[1:-1].replace(quote * 2, quote)
        if token.kind == "name" and token.text.lower() not in _RESERVED:
            self._at += 1
            return token.text
        raise self.error("a column or a literal")


_RESERVED = frozenset({"and", "or", "not", "in", "is", "between", "like", "null", "true", "false"})


def _tokenise(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"filter {text!r}, position {at + 1}: cannot read {text[at : at + 10]!r}")
        if match.lastgroup != "space":
            tokens.append(_Token(match.lastgroup, match.group(), at))
        at = match.end()
    tokens.append(_Token("end", "", len(text)))
    return tokens


def _unquote(text: str) -> str:
    return text[1:-1].replace("''", "'")


def _number(text: str) -> int | decimal.Decimal | float:
    if "e" in text.lower():
        return float(text)
    return decimal.Decimal(text) if "." in text else int(text)
