"""The loop over the points of a grid, for each row of ``loops``.

A thread gets points ``begin`` to ``end`` of a row, counted in the order of the pragma, and
finds the indices of the first by division. From there on indices are counted up: the
fastest by a plain loop, into which the function inlines, the others as an odometer.
"""

from __future__ import annotations

from jaxc.description import Bound, Code, Description, Parameter, Role

_OPERATORS = {Code.ADD: "+", Code.SUBTRACT: "-", Code.MULTIPLY: "*", Code.DIVIDE: "/"}


def index(parameter: Parameter) -> str:
    """The C variable of an index."""
    return f"jaxci_i_{parameter.name}"


def range_(description: Description) -> list[str]:
    """A local of the row loop: the two ends of the points to call."""
    place = next(k for k, p in enumerate(description.parameters) if p.role == Role.INDEX)
    return [
        f"  const long long *const jaxci_range = (const void *)jaxci_data[{place}];",
    ]


def ranges(description: Description) -> list[str]:
    """Locals for ``loop``: the range of each index."""
    # That of the slowest index is not asked for: the points end before it does.
    return [
        f"  const long long jaxci_n_{p.name} = {_expression(p.bounds[0])};"
        for p in description.indices[1:]
    ]


def loop(description: Description, call: str) -> list[str]:
    """C text that runs ``call`` for the points of one row."""
    indices = description.indices
    fast = indices[-1]
    name, kind = index(fast), fast.ctype
    out = [
        "  const long long jaxci_end = jaxci_range[1];",
        "  long long jaxci_at = jaxci_range[0];",
    ]
    if len(indices) == 1:
        return [
            *out,
            f"  const {kind} jaxci_stop = ({kind})jaxci_end;",
            f"  {kind} {name};",
            "  if (jaxci_at >= jaxci_end) return;",
            f"  for ({name} = ({kind})jaxci_at; {name} < jaxci_stop; {name}++) {{",
            f"    {call}",
            "  }",
        ]
    return [
        *out,
        *(f"  {p.ctype} {index(p)} = 0;" for p in indices[:-1]),
        "  long long jaxci_first = 0;",
        "  if (jaxci_at > 0) {",
        *_decode(indices),
        "  }",
        "  while (jaxci_at < jaxci_end) {",
        f"    const long long jaxci_room = jaxci_n_{fast.name} - jaxci_first;",
        "    const long long jaxci_left = jaxci_end - jaxci_at;",
        "    const long long jaxci_run = jaxci_left < jaxci_room ? jaxci_left : jaxci_room;",
        f"    const {kind} jaxci_stop = ({kind})(jaxci_first + jaxci_run);",
        f"    {kind} {name};",
        f"    for ({name} = ({kind})jaxci_first; {name} < jaxci_stop; {name}++) {{",
        f"      {call}",
        "    }",
        "    jaxci_at += jaxci_run;",
        "    jaxci_first = 0;",
        *_advance(indices[:-1]),
        "  }",
    ]


def _decode(indices: tuple[Parameter, ...]) -> list[str]:
    """The indices of point ``jaxci_at``."""
    fast = indices[-1].name
    out = [f"    long long jaxci_rest = jaxci_at / jaxci_n_{fast};"]
    out.append(f"    jaxci_first = jaxci_at % jaxci_n_{fast};")
    for parameter in reversed(indices[1:-1]):
        n = f"jaxci_n_{parameter.name}"
        out.append(f"    {index(parameter)} = ({parameter.ctype})(jaxci_rest % {n});")
        out.append(f"    jaxci_rest /= {n};")
    slow = indices[0]
    return [*out, f"    {index(slow)} = ({slow.ctype})jaxci_rest;"]


def _advance(slower: tuple[Parameter, ...]) -> list[str]:
    """The next point of the indices that are not the fastest."""
    out = []
    for depth, parameter in enumerate(reversed(slower)):
        indent = "  " * (2 + depth)
        out.append(f"{indent}{index(parameter)}++;")
        if depth + 1 < len(slower):
            out.append(f"{indent}if ({index(parameter)} == jaxci_n_{parameter.name}) {{")
            out.append(f"{indent}  {index(parameter)} = 0;")
    out += ["  " * (1 + depth) + "}" for depth in range(len(slower) - 1, 0, -1)]
    return out


def _expression(bound: Bound) -> str:
    """A range in C. That no step overflows has been found out before."""
    stack: list[str] = []
    for code, arg in bound.steps:
        if code == Code.CONSTANT:
            stack.append(f"{arg}LL")
        elif code == Code.DIM:
            stack.append(f"jaxci_dims[{arg}]")
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(f"({left} {_OPERATORS[Code(code)]} {right})")
    (text,) = stack
    return text
