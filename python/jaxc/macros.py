"""Macros in ``#pragma jaxc grid``: the preprocessor of C leaves pragmas as they are."""

from __future__ import annotations

import re

_HAS_GRID = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+jaxc\b.*\bgrid\b|_Pragma", re.MULTILINE)
_DEFINE = re.compile(r"\s*#\s*define\s+([A-Za-z_]\w*)(\()?\s*(.*)")
_UNDEF = re.compile(r"\s*#\s*undef\s+([A-Za-z_]\w*)")
_GRID = re.compile(r"(\s*#\s*pragma\s+jaxc\b.*?\bgrid\s*)(\(.*)")
#: Names and literals, so that the L of 2L is no name.
_WORD = re.compile(r"\b(?:[A-Za-z_]\w*|\d\w*)")
_DEEPEST = 100


def has_grid(source: str) -> bool:
    """Whether a file may have the pragma, so that its macros have to be known."""
    return _HAS_GRID.search(source) is not None


def expand(text: str) -> str:
    """Replaces macros without arguments in the ranges of grids.

    Args:
      text: what the compiler gives for ``-E -dD``: preprocessed text with its definitions.

    Returns:
      The text without the definitions, with as many lines.
    """
    values: dict[str, str] = {}
    out = []
    for line in text.split("\n"):
        if "#" not in line:
            out.append(line)
        elif define := _DEFINE.match(line):
            if define[2]:
                values.pop(define[1], None)
            else:
                values[define[1]] = define[3]
            out.append("")
        elif undef := _UNDEF.match(line):
            values.pop(undef[1], None)
            out.append("")
        elif grid := _GRID.match(line):
            out.append(grid[1] + _replace(grid[2], values, frozenset()))
        else:
            out.append(line)
    return "\n".join(out)


def _replace(text: str, values: dict[str, str], inside: frozenset[str]) -> str:
    """Macros of macros too; a macro is not replaced inside of itself, as in C."""

    def value(match: re.Match[str]) -> str:
        name = match[0]
        if name not in values or name in inside or len(inside) > _DEEPEST:
            return name
        return _replace(values[name], values, inside | {name})

    return _WORD.sub(value, text)
