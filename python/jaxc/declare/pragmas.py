"""``#pragma jaxc`` lines: what a C prototype cannot say."""

from __future__ import annotations

import dataclasses
import re

from jaxc.declare import grids
from jaxc.declare.errors import DeclarationError
from jaxc.declare.items import Pragma

#: Directives with a list of parameter names, and those that stand alone.
ROLES = ("static", "scalar", "inout", "scratch", "zero", "nondifferentiable", "linear")
FLAGS = ("effect", "serial", "hide")
KNOWN = (*ROLES, "grid", "overload", *FLAGS)

_DIRECTIVE = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")


@dataclasses.dataclass
class Directives:
    """The pragmas of one function.

    Attributes:
      roles: directive -> {parameter name: pragma}.
      grid: the indices with their ranges, the slowest first; empty where there is no grid.
    """

    roles: dict[str, dict[str, Pragma]] = dataclasses.field(default_factory=dict)
    grid: tuple[grids.Range, ...] = ()
    overload: str | None = None
    effect: bool = False
    serial: bool = False
    hide: bool = False

    def merge(self, other: Directives) -> None:
        """Adds those of another declaration of the same function."""
        for directive, names in other.roles.items():
            self.roles.setdefault(directive, {}).update(names)
        if self.grid and other.grid and self.grid != other.grid:
            pragma = other.grid[0].pragma
            raise DeclarationError(
                pragma.file,
                pragma.line,
                f"'#pragma jaxc {pragma.text.strip()}' differs from the grid of another "
                "declaration of the function",
            )
        self.grid = self.grid or other.grid
        self.overload = self.overload or other.overload
        self.effect |= other.effect
        self.serial |= other.serial
        self.hide |= other.hide

    def has(self, directive: str, name: str) -> bool:
        return name in self.roles.get(directive, {})


def parse(pragmas: list[Pragma]) -> Directives:
    """Reads the pragmas that stand before one function.

    Raises:
      DeclarationError: for a directive that is unknown or badly formed.
    """
    out = Directives()
    for pragma in pragmas:
        at = 0
        if not pragma.text.strip():
            raise DeclarationError(
                pragma.file, pragma.line, "'#pragma jaxc' without a directive; " + _known()
            )
        while at < len(pragma.text):
            match = _DIRECTIVE.match(pragma.text, at)
            end = None if match is None else _argument_end(pragma.text, match.end())
            if match is None or end is None:
                raise DeclarationError(
                    pragma.file,
                    pragma.line,
                    f"'#pragma jaxc {pragma.text.strip()}' is not understood at "
                    f"'{pragma.text[at if match is None else match.end() :].strip()}'",
                )
            argument = pragma.text[match.end() + 1 : end - 1] if end > match.end() else None
            _add(out, pragma, match[1], argument)
            at = end
    return out


def _argument_end(text: str, at: int) -> int | None:
    """Where the argument in parentheses ends; ``at`` where none begins, None for no end."""
    if text[at : at + 1] != "(":
        return at
    depth = 0
    for end in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return end + 1
    return None


def _known() -> str:
    return "known are " + ", ".join(KNOWN)


def _add(out: Directives, pragma: Pragma, directive: str, argument: str | None) -> None:
    def fail(text: str) -> DeclarationError:
        return DeclarationError(pragma.file, pragma.line, f"'#pragma jaxc {directive}' {text}")

    if directive not in KNOWN:
        raise fail("is not known; " + _known())
    if directive in FLAGS:
        if argument is not None:
            raise fail(f"takes no argument, got ({argument})")
        setattr(out, directive, True)
        return
    if directive == "grid":
        if out.grid:
            raise fail("is given twice; one grid has all indices: grid(i < n, j < m)")
        try:
            out.grid = grids.read(argument, pragma)
        except ValueError as error:
            raise fail(str(error)) from None
        return
    names = [name.strip() for name in (argument or "").split(",")]
    for name in names:
        if not _NAME.match(name):
            raise fail(f"expects names in parentheses, got ({argument or ''})")
    if directive == "overload":
        if len(names) != 1:
            raise fail(f"expects one name, got ({argument})")
        out.overload = names[0]
        return
    out.roles.setdefault(directive, {}).update((name, pragma) for name in names)
