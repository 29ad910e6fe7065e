"""Signatures in NumPy's notation, ``(n),(k)->(n-k+1)``, as bounds and dimensions."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Sequence

from jaxc.description import (
    MAX_BOUND_DEPTH,
    MAX_DIMS,
    MAX_PARAMETERS,
    Bound,
    Code,
    Dim,
    Parameter,
)

_OPERATORS: dict[type[ast.operator], Code] = {
    ast.Add: Code.ADD,
    ast.Sub: Code.SUBTRACT,
    ast.Mult: Code.MULTIPLY,
    ast.FloorDiv: Code.DIVIDE,
    ast.Div: Code.DIVIDE,
}
_LARGEST = 2**63 - 1


@dataclasses.dataclass(frozen=True)
class Signature:
    """Core axes of inputs and outputs, and the names of dimensions in order of appearance."""

    inputs: tuple[tuple[Bound, ...], ...]
    outputs: tuple[tuple[Bound, ...], ...]
    dims: tuple[str, ...]

    def solved(
        self, parameters: Sequence[Parameter], first_output: int
    ) -> tuple[tuple[Dim, ...], tuple[tuple[int, int, int], ...]]:
        """Dimensions, and the steps that find them in the parameters before the outputs."""
        from jaxc.declare.bounds import solve  # not at import: it needs the parser of C

        operands = [(k, p) for k, p in enumerate(parameters[:first_output])]
        steps, given = solve(operands, len(self.dims), set())
        dims = tuple(
            Dim(name, 0, _LARGEST, number in given) for number, name in enumerate(self.dims)
        )
        return dims, steps


def parse(text: str, *, needs_output: bool = True) -> Signature:
    """Reads a signature. Axes are names, integers, and + - * // over them.

    Raises:
      ValueError: with the part that is not understood.
    """
    left, arrow, right = text.partition("->")
    if not arrow:
        raise ValueError(f"signature {text!r} has no '->'; write (n),(n)->(n)")
    dims: dict[str, int] = {}
    sides = [
        tuple(
            tuple(_bound(axis, dims, text) for axis in axes) for axes in _operands(side, text)
        )
        for side in (left, right)
    ]
    if not sides[1] and needs_output:
        raise ValueError(f"signature {text!r} has no output")
    if len(dims) > MAX_DIMS or len(sides[0]) + len(sides[1]) >= MAX_PARAMETERS:
        raise ValueError(
            f"signature {text!r} has more than {MAX_PARAMETERS - 1} arrays or {MAX_DIMS} "
            "dimensions"
        )
    return Signature(sides[0], sides[1], tuple(dims))


def _operands(side: str, whole: str) -> list[list[str]]:
    out = []
    rest = side.strip()
    while rest:
        end = _closing(rest)
        if end is None:
            raise ValueError(f"signature {whole!r} is not understood at {rest!r}")
        inside = rest[1:end].strip()
        out.append([axis.strip() for axis in inside.split(",")] if inside else [])
        rest = rest[end + 1 :].strip()
        if rest and not rest.startswith(","):
            raise ValueError(f"signature {whole!r} is not understood at {rest!r}")
        if rest.startswith(",") and not rest[1:].strip():
            raise ValueError(f"signature {whole!r} ends in a comma")
        rest = rest.removeprefix(",").strip()
    return out


def _closing(text: str) -> int | None:
    """Index of the parenthesis that closes the one at 0; None where there is none."""
    depth = 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            return at if char == ")" else None
    return None


def _bound(axis: str, dims: dict[str, int], whole: str) -> Bound:
    steps: list[tuple[int, int]] = []
    try:
        if not re.fullmatch(r"[\w\s+\-*/()]+", axis):
            raise SyntaxError
        depth = _emit(ast.parse(axis, mode="eval").body, dims, steps)
    except SyntaxError:
        raise ValueError(
            f"signature {whole!r}: the axis {axis!r} is not understood; an axis is a name, an "
            "integer, or + - * // over them"
        ) from None
    if depth > MAX_BOUND_DEPTH:
        raise ValueError(f"signature {whole!r}: the axis {axis!r} is nested too deeply")
    return Bound(axis, tuple(steps))


def _emit(node: ast.expr, dims: dict[str, int], steps: list[tuple[int, int]]) -> int:
    """Appends the steps of an expression; returns the stack depth that they need."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        steps.append((Code.CONSTANT, node.value))
        return 1
    if isinstance(node, ast.Name):
        steps.append((Code.DIM, dims.setdefault(node.id, len(dims))))
        return 1
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _emit(node.left, dims, steps)
        right = _emit(node.right, dims, steps)
        steps.append((_OPERATORS[type(node.op)], 0))
        return max(left, 1 + right)
    raise SyntaxError
