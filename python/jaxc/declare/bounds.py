"""Bounds of arrays: C expressions to postfix programs, and the order that solves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pycparser import c_ast, c_generator

from jaxc.declare.types import integer_literal
from jaxc.description import MAX_BOUND_DEPTH, Bound, Code, Parameter

_OPERATORS = {
    "+": Code.ADD,
    "-": Code.SUBTRACT,
    "*": Code.MULTIPLY,
    "/": Code.DIVIDE,
}


class BoundError(Exception):
    """A bound that jaxc cannot compute; the text says why."""


def names(node: c_ast.Node) -> list[str]:
    """Identifiers in an expression, in order, without those of a struct's members."""
    if isinstance(node, c_ast.ID):
        return [node.name]
    if isinstance(node, c_ast.StructRef):
        return names(node.name)
    return [name for child in node for name in names(child)]


def text(node: c_ast.Node) -> str:
    return str(c_generator.CGenerator(reduce_parentheses=True).visit(node))


def compile_bound(
    node: c_ast.Node,
    dims: Mapping[str, int],
    enumerator: Callable[[str], int | None],
    used: dict[str, int],
) -> Bound:
    """The program of an expression.

    Args:
      node: the expression.
      dims: number of each parameter that is a dimension.
      enumerator: value of an enumeration constant, or None.
      used: receives the enumeration constants that the bound depends on.

    Raises:
      BoundError: for a name or an operator that is not allowed in a bound.
    """
    steps: list[tuple[int, int]] = []
    depth = _emit(node, dims, enumerator, used, steps)
    if depth > MAX_BOUND_DEPTH:
        raise BoundError(f"bound '{text(node)}' is nested too deeply")
    return Bound(text(node), tuple(steps))


def _emit(
    node: c_ast.Node,
    dims: Mapping[str, int],
    enumerator: Callable[[str], int | None],
    used: dict[str, int],
    steps: list[tuple[int, int]],
) -> int:
    """Appends the steps of ``node``; returns the stack depth that they need."""
    if isinstance(node, c_ast.Constant):
        try:
            steps.append((Code.CONSTANT, integer_literal(node.value)))
        except ValueError:
            raise BoundError(f"bound '{node.value}' is not an integer") from None
        return 1
    if isinstance(node, c_ast.ID):
        if node.name in dims:
            steps.append((Code.DIM, dims[node.name]))
            return 1
        value = enumerator(node.name)
        if value is None:
            raise BoundError(f"bound '{node.name}' is not a parameter, constant or macro")
        used[node.name] = value
        steps.append((Code.CONSTANT, value))
        return 1
    if isinstance(node, c_ast.UnaryOp) and node.op in "+-":
        if node.op == "+":
            return _emit(node.expr, dims, enumerator, used, steps)
        steps.append((Code.CONSTANT, 0))
        depth = _emit(node.expr, dims, enumerator, used, steps)
        steps.append((Code.SUBTRACT, 0))
        return 1 + depth
    if isinstance(node, c_ast.BinaryOp) and node.op in _OPERATORS:
        left = _emit(node.left, dims, enumerator, used, steps)
        right = _emit(node.right, dims, enumerator, used, steps)
        steps.append((_OPERATORS[node.op], 0))
        return max(left, 1 + right)
    raise BoundError(
        f"bound '{text(node)}' is more than + - * / and parentheses over parameters, "
        "constants and macros"
    )


def _is_linear(bound: Bound, dim: int) -> bool:
    """Whether the bound is a * dim + b with a and b free of ``dim``."""
    degrees: list[int] = []  # of each value on the stack
    for code, arg in bound.steps:
        if code in (Code.CONSTANT, Code.DIM):
            degrees.append(int(code == Code.DIM and arg == dim))
            continue
        right, left = degrees.pop(), degrees.pop()
        if code == Code.DIVIDE:
            degrees.append(9 if left or right else 0)
        else:
            degrees.append(left + right if code == Code.MULTIPLY else max(left, right))
    return degrees == [1]


def solve(
    operands: Sequence[tuple[int, Parameter]], dim_count: int, given: set[int]
) -> tuple[tuple[tuple[int, int, int], ...], set[int]]:
    """Finds how the shapes of operands give the dimensions.

    Args:
      operands: parameters that are read, with their positions.
      given: dimensions that are given by keyword anyway.

    Returns:
      Steps (dim, position, axis) in the order that solves them, and the dimensions that
      must be given by keyword, which are ``given`` and those that no shape determines.
    """
    steps: list[tuple[int, int, int]] = []
    given = set(given)
    known = set(given)
    axes = [
        (position, axis, bound)
        for position, parameter in operands
        for axis, bound in enumerate(parameter.bounds)
    ]
    # An axis whose size is the dimension itself is the plainest witness.
    axes.sort(key=lambda entry: entry[2].dim is None)
    while len(known) < dim_count:
        for position, axis, bound in axes:
            unknown = bound.dims - known
            if len(unknown) == 1 and _is_linear(bound, dim := next(iter(unknown))):
                steps.append((dim, position, axis))
                known.add(dim)
                break
        else:
            dim = min(set(range(dim_count)) - known)
            given.add(dim)
            known.add(dim)
    return tuple(steps), given
