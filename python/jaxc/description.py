"""What a C function is to jaxc: parameters, dimensions and the roles they play.

These are the Python forms of the structs in ``<jaxc/library.h>``. ``declare`` makes them
from C text, ``generate`` writes them into a library, ``library`` reads them back; nothing
else about a function is known when it is called.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

MAX_PARAMETERS = 64
MAX_DIMS = 32
MAX_BOUND_DEPTH = 16

STRING = -1
"""dtype number of a static string."""

#: XLA's number of each element type -> NumPy dtype.
DTYPES: Mapping[int, np.dtype[Any]] = {
    1: np.dtype(np.bool_),
    2: np.dtype(np.int8),
    3: np.dtype(np.int16),
    4: np.dtype(np.int32),
    5: np.dtype(np.int64),
    6: np.dtype(np.uint8),
    7: np.dtype(np.uint16),
    8: np.dtype(np.uint32),
    9: np.dtype(np.uint64),
    10: np.dtype(np.float16),
    11: np.dtype(np.float32),
    12: np.dtype(np.float64),
    15: np.dtype(np.complex64),
    16: np.dtype(ml_dtypes.bfloat16),
    18: np.dtype(np.complex128),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e4m3fn),
}

#: NumPy dtype -> XLA's number of it.
NUMBERS: Mapping[np.dtype[Any], int] = {dtype: number for number, dtype in DTYPES.items()}


class Role(enum.IntEnum):
    """What a C parameter is in a call; numbers as in ``jaxc_role``."""

    INPUT = 1
    OUTPUT = 2
    INOUT = 3
    SCRATCH = 4
    STATIC = 5
    DIM = 6
    CONTEXT = 7
    DATA = 8
    INDEX = 9


OPERANDS = (Role.INPUT, Role.INOUT)
RESULTS = (Role.OUTPUT, Role.INOUT)


class Code(enum.IntEnum):
    """Operators of a bound's postfix program; numbers as in ``jaxc_bound_operator``."""

    CONSTANT = 0
    DIM = 1
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    DIVIDE = 5


@dataclasses.dataclass(frozen=True)
class Bound:
    """The size of one axis: a postfix program over the dimensions.

    Attributes:
      text: the expression as written in C.
      steps: pairs of operator and argument; only CONSTANT and DIM use the argument.
    """

    text: str
    steps: tuple[tuple[int, int], ...]

    @property
    def dim(self) -> int | None:
        """Number of the dimension that this bound is, or None if it is computed."""
        if len(self.steps) == 1 and self.steps[0][0] == Code.DIM:
            return self.steps[0][1]
        return None

    @property
    def constant(self) -> int | None:
        """The fixed size, or None if the bound depends on a dimension."""
        if any(code == Code.DIM for code, _ in self.steps):
            return None
        return int(self.value(()))

    @property
    def dims(self) -> frozenset[int]:
        return frozenset(arg for code, arg in self.steps if code == Code.DIM)

    def value(self, dims: Sequence[Any]) -> Any:
        """The size for these dimensions. Division is C's, towards zero.

        Raises:
          ZeroDivisionError: as C would, but in time.
        """
        stack: list[Any] = []
        for code, arg in self.steps:
            if code == Code.CONSTANT:
                stack.append(arg)
                continue
            if code == Code.DIM:
                stack.append(dims[arg])
                continue
            b = stack.pop()
            a = stack.pop()
            if code == Code.ADD:
                stack.append(a + b)
            elif code == Code.SUBTRACT:
                stack.append(a - b)
            elif code == Code.MULTIPLY:
                stack.append(a * b)
            else:
                floor = a // b
                exact = not isinstance(a, int) or floor * b == a or (a < 0) == (b < 0)
                stack.append(floor if exact else floor + 1)
        (size,) = stack
        return size


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One C parameter, or the returned value as the first output, named "return".

    Attributes:
      declaration: the C declaration, ``const float x[n]``; of a Python function's array
        ``x: float32[n]``.
      dtype: XLA's number of the element type; STRING; 0 while only C's name is known.
      rank: number of core dims, with as many bounds.
      dim: for Role.DIM the number of the dimension; for Role.INDEX the place in the grid,
        0 for the index that changes slowest; else -1. An index has its range as a bound.
      zero: an output that is cleared before the call.
      ctype: C's name of the element type, for the generator; empty when read back.
    """

    name: str
    declaration: str
    role: Role
    dtype: int
    rank: int
    bounds: tuple[Bound, ...]
    dim: int = -1
    ctype: str = ""
    nondifferentiable: bool = False
    linear: bool = False
    zero: bool = False

    @property
    def shown(self) -> str:
        """Its declaration, as messages have it."""
        return f"({'' if ': ' in self.declaration else 'C: '}{self.declaration})"

    @property
    def is_differentiable(self) -> bool:
        """Whether its type has tangents: floating and complex types."""
        return self.dtype > 0 and self.numpy_dtype.kind in "fcV"

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return DTYPES[self.dtype]


@dataclasses.dataclass(frozen=True)
class Dim:
    """A dimension: its C integer type's range, and whether it is given by keyword."""

    name: str
    minimum: int
    maximum: int
    is_static: bool
    ctype: str = ""


class Result(enum.Enum):
    """What the C function's returned value is."""

    NOTHING = "nothing"
    VALUE = "value"
    STATUS = "status"
    TEXT = "text"


@dataclasses.dataclass(frozen=True)
class Description:
    """One C function.

    Attributes:
      refusal: why it cannot be called, or None. A refused function has no parameters.
      solve: (dim, parameter, axis): in this order each dim follows from an axis's size.
      result: only known while generating; the library's row loop has it compiled in.
      checks: (enumerator, value) pairs that the compiler must confirm.
    """

    name: str
    prototype: str
    file: str
    line: int
    doc: str | None = None
    overload: str | None = None
    serial: bool = False
    effect: bool = False
    refusal: str | None = None
    parameters: tuple[Parameter, ...] = ()
    dims: tuple[Dim, ...] = ()
    solve: tuple[tuple[int, int, int], ...] = ()
    result: Result = Result.NOTHING
    checks: tuple[tuple[str, int], ...] = ()

    @property
    def indices(self) -> tuple[Parameter, ...]:
        """The indices of a grid, the slowest first; none where there is no grid."""
        return tuple(sorted(self.with_role(Role.INDEX), key=lambda p: p.dim))

    @property
    def counts(self) -> tuple[int, int, int]:
        """Arguments, results and attributes of a call, the token of an effect included."""
        token = int(self.effect)
        dims = sum(dim.is_static for dim in self.dims)
        return (
            token + len(self.with_role(*OPERANDS)),
            token + len(self.with_role(*RESULTS)),
            len(self.with_role(Role.STATIC)) + dims,
        )

    def with_role(self, *roles: Role) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.role in roles)

    def at_address(self) -> Description:
        """The same function, called at an address: its data, before all parameters."""
        if self.refusal is not None:
            return self
        data = Parameter("", "", Role.DATA, 0, 0, ())
        solve = tuple((dim, parameter + 1, axis) for dim, parameter, axis in self.solve)
        return dataclasses.replace(self, parameters=(data, *self.parameters), solve=solve)

    @property
    def signature(self) -> str:
        """NumPy's gufunc notation: ``(n),(k)->(n-k+1)``."""

        def core(parameters: tuple[Parameter, ...]) -> str:
            return ",".join(
                "(" + ",".join(b.text.replace(" ", "") for b in p.bounds) + ")"
                for p in parameters
            )

        return f"{core(self.with_role(*OPERANDS))}->{core(self.with_role(*RESULTS))}"
