"""``#pragma jaxc grid(i < n, j < m)``: the indices of a function and their ranges."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pycparser import c_ast, c_parser

from jaxc.declare import bounds
from jaxc.declare.errors import DeclarationError
from jaxc.declare.items import Pragma
from jaxc.declare.types import INTEGERS
from jaxc.description import Bound

if TYPE_CHECKING:
    from jaxc.declare.prototype import Reader

_RANGE = re.compile(r"\s*([A-Za-z_]\w*)\s*<(?![<=])\s*(.*\S)\s*\Z", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Range:
    """One index as the pragma has it. ``text`` is the expression behind ``<``.

    Equal by name and text: several declarations may repeat a pragma.
    """

    name: str
    text: str
    pragma: Pragma = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class Index:
    """An index that is a parameter. ``place``: 0 for the one that changes slowest."""

    range: Range
    place: int
    node: c_ast.Node
    function: str
    others: tuple[str, ...]

    def bound(
        self,
        dims: Mapping[str, int],
        enumerator: Callable[[str], int | None],
        used: dict[str, int],
    ) -> Bound:
        """The range as a program; see ``bounds.compile_bound``.

        Raises:
          DeclarationError: for an expression that is no bound.
        """
        try:
            for name in bounds.names(self.node):
                if name in self.others and name not in dims:
                    raise bounds.BoundError(f"'{name}' is no integer passed by value")
            bound = bounds.compile_bound(self.node, dims, enumerator, used)
            if bound.constant is not None and bound.constant < 0:
                raise bounds.BoundError(f"bound '{bound.text}' is negative")
        except (bounds.BoundError, ZeroDivisionError) as error:
            text = str(error) if isinstance(error, bounds.BoundError) else "divides by zero"
            raise _error(
                self.range, self.function, f"range '{self.range.text}': {text}"
            ) from None
        return bound


def read(argument: str | None, pragma: Pragma) -> tuple[Range, ...]:
    """The ranges in the argument of the directive.

    Raises:
      ValueError: saying what is expected there.
    """
    out: list[Range] = []
    for part in _parts(argument or ""):
        match = _RANGE.match(part)
        if match is None:
            raise ValueError(
                f"expects indices with their ranges, 'i < n', got '{part.strip()}'"
            )
        if any(match[1] == other.name for other in out):
            raise ValueError(f"has index '{match[1]}' twice")
        out.append(Range(match[1], " ".join(match[2].split()), pragma))
    return tuple(out)


def of(reader: Reader) -> dict[str, Index]:
    """The indices of a declaration whose names and types are read.

    Raises:
      DeclarationError: for an index that is no integer passed by value, that has another
        role too or stands in a bound, and for a range that is no expression.
    """
    function = reader.candidate.name
    out: dict[str, Index] = {}
    for place, range_ in enumerate(reader.directives.grid):
        name = range_.name
        if name not in reader.names:
            raise _error(
                range_, function,
                f"it has no such parameter; it has {', '.join(reader.names) or 'none'}",
            )  # fmt: skip
        ctype = reader.ctypes[reader.names.index(name)]
        if ctype.layers or ctype.base not in INTEGERS:
            kind = "an array or a pointer" if ctype.layers else f"of type '{ctype.base}'"
            raise _error(
                range_, function, f"it is {kind}; an index is an integer passed by value"
            )
        for directive, names in reader.directives.roles.items():
            if name in names:
                raise _error(range_, function, f"it cannot be {directive} too")
        node = _expression(range_, function)
        out[name] = Index(range_, place, node, function, tuple(reader.names))
    for index in out.values():
        for name in bounds.names(index.node):
            if name in out:
                raise _error(
                    index.range, function,
                    f"its range '{index.range.text}' depends on index '{name}'; a grid is a "
                    "box, and the function may return at once for points that it leaves out",
                )  # fmt: skip
    for name, ctype in zip(reader.names, reader.ctypes, strict=True):
        for layer in ctype.layers:
            for used in bounds.names(layer) if isinstance(layer, c_ast.Node) else ():
                if used in out:
                    raise _error(
                        out[used].range, function,
                        f"it stands in a bound of '{name}'; sizes are the same for all points",
                    )  # fmt: skip
    return out


def _error(range_: Range, function: str, text: str) -> DeclarationError:
    pragma = range_.pragma
    return DeclarationError(
        pragma.file,
        pragma.line,
        f"'#pragma jaxc {pragma.text.strip()}': index '{range_.name}' of '{function}': {text}",
    )


def _expression(range_: Range, function: str) -> c_ast.Node:
    try:
        tree = c_parser.CParser().parse(f"int jaxci_range[({range_.text})];", "")
        node = tree.ext[0].type.dim
    except (c_parser.ParseError, AttributeError):
        node = None
    if node is None or len(tree.ext) != 1:
        raise _error(range_, function, f"its range '{range_.text}' is no expression of C")
    return node


def _parts(text: str) -> list[str]:
    """The text at commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
