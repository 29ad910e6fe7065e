"""One C declaration to one description: what each parameter and the result are."""

from __future__ import annotations

import dataclasses
import re

from pycparser import c_ast

from jaxc.declare import bounds, grids, pragmas
from jaxc.declare.errors import DeclarationError
from jaxc.declare.items import Item
from jaxc.declare.types import ELEMENTS, FLOATING, INTEGERS, CType, Types, UnknownTypeError
from jaxc.description import (
    MAX_DIMS,
    MAX_PARAMETERS,
    OPERANDS,
    RESULTS,
    STRING,
    Bound,
    Description,
    Dim,
    Parameter,
    Result,
    Role,
)


class RefusedError(Exception):
    """Why a function cannot be called from JAX."""


@dataclasses.dataclass
class Candidate:
    """One declaration of a function in one of the user's files."""

    name: str
    unit: int
    item: Item
    directives: pragmas.Directives
    types: Types
    node: c_ast.Decl | None = None
    problem: str | None = None  # why it could not be parsed


#: Directives of which a parameter has at most one.
_EXCLUSIVE = ("static", "inout", "scratch", "zero")

OLD_STYLE = (
    "is an old-style definition without a prototype; declare it with one, "
    "'double {0}(double x);', or write its parameters with their types"
)

#: What to do where the order of parameters is fixed, as a library's is.
SIZE_FIRST = "write a small C file over it that takes the size first and calls it"


def parameters_of(function: c_ast.FuncDecl) -> list[c_ast.Node]:
    parameters = list(function.args.params) if function.args is not None else []
    if len(parameters) == 1 and isinstance(parameters[0], c_ast.Typename):
        inner = parameters[0].type
        if isinstance(inner, c_ast.TypeDecl) and inner.type.names == ["void"]:
            return []
    return parameters


def _own_bounds(node: c_ast.Node) -> int:
    """How many of a type's layers stand in the declaration, not in a typedef."""
    count = 0
    while not isinstance(node.type, (c_ast.TypeDecl, type(None))):
        node, count = node.type, count + 1
    return count


class Reader:
    """Reads one declaration."""

    def __init__(self, candidate: Candidate, directives: pragmas.Directives):
        self.candidate = candidate
        self.directives = directives
        self.types = candidate.types
        self.enumerators: dict[str, int] = {}

    def read(self) -> Description:
        candidate = self.candidate
        if candidate.problem is not None:
            raise RefusedError(candidate.problem)
        assert candidate.node is not None
        specifiers = candidate.node.funcspec or []
        if "inline" in specifiers and "extern" not in (candidate.node.storage or []):
            raise RefusedError(
                "is 'inline' without 'static' or 'extern', which C gives no definition "
                "to call; drop 'inline' (the compiler inlines it anyway)"
            )
        self.function: c_ast.FuncDecl = candidate.node.type
        if self.function.args is None:
            raise RefusedError("has no prototype: write (void) for no parameters")
        self._read_names()
        self._check_pragma_names()
        self.grid = grids.of(self)
        self._find_dims()
        parameters = [self._parameter(k) for k in range(len(self.nodes))]
        for parameter in parameters:
            if self.directives.has("zero", parameter.name) and parameter.role != Role.OUTPUT:
                raise RefusedError(
                    f"has parameter '{parameter.name}' ({parameter.declaration}) that is no "
                    "output and cannot be zero"
                )
        result, parameters = self._result(parameters)
        if len(parameters) > MAX_PARAMETERS:
            raise RefusedError(f"has more than {MAX_PARAMETERS} parameters")
        return self._finish(result, parameters)

    def _read_names(self) -> None:
        self.nodes = parameters_of(self.function)
        self.names: list[str] = []
        self.ctypes: list[CType] = []
        for position, node in enumerate(self.nodes):
            if isinstance(node, c_ast.EllipsisParam):
                raise RefusedError("takes a variable number of arguments")
            if isinstance(node, c_ast.ID):
                raise RefusedError(OLD_STYLE.format(self.candidate.name))
            self.names.append(node.name or f"arg{position}")
            try:
                self.ctypes.append(self.types.resolve(node.type))
            except UnknownTypeError as error:
                raise RefusedError(
                    f"has parameter '{self.names[-1]}' of unknown type '{error}'"
                ) from None

    def _check_pragma_names(self) -> None:
        for directive, names in self.directives.roles.items():
            for name, pragma in names.items():
                if name not in self.names:
                    raise DeclarationError(
                        pragma.file,
                        pragma.line,
                        f"'#pragma jaxc {directive}({name})': '{self.candidate.name}' has no "
                        f"parameter '{name}'; it has {', '.join(self.names) or 'none'}",
                    )
                others = [
                    other
                    for other in _EXCLUSIVE
                    if other != directive and self.directives.has(other, name)
                ]
                if directive in _EXCLUSIVE and others:
                    raise DeclarationError(
                        pragma.file,
                        pragma.line,
                        f"parameter '{name}' of '{self.candidate.name}' cannot be both "
                        f"{directive} and {others[0]}",
                    )

    def _find_dims(self) -> None:
        """Integer parameters that stand in a bound are dimensions."""
        in_bounds: set[str] = set()
        for position, ctype in enumerate(self.ctypes):
            for layer in ctype.layers[: _own_bounds(self.nodes[position])]:
                if isinstance(layer, c_ast.Node):
                    in_bounds.update(set(bounds.names(layer)) & set(self.names[:position]))
        for index in self.grid.values():
            in_bounds.update(bounds.names(index.node))
        self.has_bounds = any(
            isinstance(layer, c_ast.Node) for ctype in self.ctypes for layer in ctype.layers
        )
        self.dims: dict[str, int] = {}
        for name, ctype in zip(self.names, self.ctypes, strict=True):
            if name in in_bounds and not ctype.layers and ctype.base in INTEGERS:
                self.dims[name] = len(self.dims)
        if len(self.dims) > MAX_DIMS:
            raise RefusedError(f"has more than {MAX_DIMS} dimensions")
        self.all_integers_are_dims = all(
            name in self.dims or name in self.grid
            for name, ctype in zip(self.names, self.ctypes, strict=True)
            if not ctype.layers and ctype.base in INTEGERS
        )

    def _parameter(self, position: int) -> Parameter:
        name, ctype = self.names[position], self.ctypes[position]
        node = self.nodes[position]
        declaration = " ".join(bounds.text(node).split())
        if node.name is None:
            declaration = f"{declaration} {name}"
        has = self.directives.has
        if name in self.grid:
            index = self.grid[name]
            bound = index.bound(self.dims, self.types.enumerator, self.enumerators)
            return Parameter(
                name, declaration, Role.INDEX, 0, 1, (bound,), index.place, ctype.base
            )
        if has("static", name):
            return self._static(name, declaration, ctype)
        if name in self.dims:
            return Parameter(name, declaration, Role.DIM, 0, 0, (), self.dims[name], ctype.base)
        if ctype.base == "struct jaxc_context" and ctype.layers == ("*",):
            if self.grid:
                raise RefusedError(
                    f"is called for each point of a grid and takes a jaxc_context "
                    f"({declaration}), which is one call's and not one point's; leave out "
                    "the grid and use jaxc_parallel_for, or leave out the context"
                )
            return Parameter(name, declaration, Role.CONTEXT, 0, 0, ())
        if ctype.base not in ELEMENTS or "()" in ctype.layers:
            raise RefusedError(self._unsupported(name, declaration, ctype))
        core = self._core(name, declaration, ctype)
        if not ctype.layers:
            for directive in ("inout", "scratch", "scalar"):
                if has(directive, name):
                    raise RefusedError(
                        f"has parameter '{name}' ({declaration}) that is passed by value "
                        f"and cannot be {directive}"
                    )
            role = Role.INPUT
        elif has("scratch", name) or has("inout", name):
            role = Role.SCRATCH if has("scratch", name) else Role.INOUT
            if ctype.is_const:
                raise RefusedError(
                    f"has parameter '{name}' ({declaration}) that is const and cannot be "
                    f"{role.name.lower()}"
                )
        else:
            role = Role.INPUT if ctype.is_const else Role.OUTPUT
        marks = {mark: has(mark, name) for mark in ("nondifferentiable", "linear")}
        for mark, is_set in marks.items():
            if is_set and (role not in OPERANDS or ctype.base not in FLOATING):
                raise RefusedError(
                    f"has parameter '{name}' ({declaration}) that is no floating input and "
                    f"cannot be {mark}"
                )
        marks["zero"] = has("zero", name)
        return Parameter(name, declaration, role, 0, len(core), core, -1, ctype.base, **marks)

    def _unsupported(self, name: str, declaration: str, ctype: CType) -> str:
        kind, instead = f"type '{ctype.base}'", "that takes numbers and arrays"
        if "()" in ctype.layers:
            kind, instead = "a function pointer", "that has the function it calls in C"
        elif ctype.layers and re.match("struct|union", ctype.base):
            instead = "that makes what it points to, uses it and frees it"
        return (
            f"has parameter '{name}' ({declaration}) of {kind}, which no JAX array holds; "
            f"write a small C file over it {instead}"
        )

    def _core(self, name: str, declaration: str, ctype: CType) -> tuple[Bound, ...]:
        """Core dims of a parameter; () when it is one value."""
        if not ctype.layers:
            return ()
        layers = ctype.layers
        if "*" in layers or layers[0] is None:
            if layers != ("*",) and layers != (None,):
                raise RefusedError(
                    f"has parameter '{name}' ({declaration}) with a pointer or an empty "
                    f"bound inside; write all its bounds: {ctype.base} {name}[n][k]"
                )
            if self.directives.has("scalar", name) or self._is_plain_output(name, ctype):
                return ()
            element = re.sub(r"\s*[*\[].*", "", declaration)
            element = element if "*" in declaration else element.rpartition(" ")[0]
            value = re.sub(r"\bconst\s+", "", element)
            raise RefusedError(
                f"has parameter '{name}' ({declaration}) without a bound: write "
                f"'{element} {name}[n]' for an array of n, '{value} {name}' for a value, or "
                f"'#pragma jaxc scalar({name})' for a pointer to one value"
                + self._size_first(name)
            )
        if self.directives.has("scalar", name):
            raise RefusedError(
                f"has parameter '{name}' ({declaration}) that has a bound and cannot be scalar"
            )
        position = self.names.index(name)
        # A parameter to the right, or any in a typedef, is not what its name means there.
        seen = {n: k for n, k in self.dims.items() if n in self.names[:position]}
        own = _own_bounds(self.nodes[position])
        out = []
        for number, layer in enumerate(layers):
            assert isinstance(layer, c_ast.Node)
            try:
                bound = bounds.compile_bound(
                    layer, seen if number < own else {}, self.types.enumerator,
                    self.enumerators,
                )  # fmt: skip
                if bound.constant is not None and bound.constant < 0:
                    raise bounds.BoundError(f"bound '{bound.text}' is negative")
            except (bounds.BoundError, ZeroDivisionError) as error:
                raise RefusedError(f"has parameter '{name}' ({declaration}): {error}") from None
            out.append(bound)
        return tuple(out)

    def _size_first(self, name: str) -> str:
        """What else is needed where all integers stand behind an array."""
        integers = [
            n
            for n, ctype in zip(self.names, self.ctypes, strict=True)
            if not ctype.layers and ctype.base in INTEGERS
        ]
        before = self.names[: self.names.index(name)]
        if not integers or any(n in before for n in integers):
            return ""
        return (
            f". A bound can use only parameters to its left, and '{integers[0]}' is to its "
            f"right: put it first, or, where the order is fixed, {SIZE_FIRST}"
        )

    def _is_plain_output(self, name: str, ctype: CType) -> bool:
        """A pointer to one result: the prototype gives its arrays bounds, this has none.

        Where no parameter has a bound, its author does not write them, and a guess could
        write behind one value: then the pragma must say it.
        """
        if ctype.layers != ("*",) or ctype.is_const or ctype.base == "char":
            return False
        return self._is_partner(name) or (self.all_integers_are_dims and self.has_bounds)

    def _is_partner(self, name: str) -> bool:
        """``double *ct_x`` beside ``double x`` in ``f_bwd``: one value, as x is."""
        is_kernel = self.candidate.name.endswith(("_bwd", "_jvp", "_transpose"))
        prefix, _, partner = name.partition("_")
        if not is_kernel or prefix not in ("ct", "d") or partner not in self.names:
            return False
        return not self.ctypes[self.names.index(partner)].layers

    def _static(self, name: str, declaration: str, ctype: CType) -> Parameter:
        if name in self.dims:
            return Parameter(name, declaration, Role.DIM, 0, 0, (), self.dims[name], ctype.base)
        if ctype.layers == ("*",) and ctype.base == "char" and ctype.is_const:
            return Parameter(name, declaration, Role.STATIC, STRING, 0, (), -1, "char")
        if ctype.layers or ctype.base not in ELEMENTS or ctype.base in (
            "_Float16", "jaxc_bf16", "jaxc_f8e4m3fn", "jaxc_f8e5m2",
        ):  # fmt: skip
            raise RefusedError(
                f"has static parameter '{name}' ({declaration}); static can be a number "
                "by value of 32 bits or more, a small integer, or a 'const char *'; an "
                "array is passed as an input"
            )
        return Parameter(name, declaration, Role.STATIC, 0, 0, (), -1, ctype.base)

    def _result(self, parameters: list[Parameter]) -> tuple[Result, list[Parameter]]:
        """What the returned value is; adds it to the parameters when it is an output."""
        try:
            ctype = self.types.resolve(self.function.type)
        except UnknownTypeError as error:
            raise RefusedError(f"returns the unknown type '{error}'") from None
        has_outputs = any(p.role in RESULTS for p in parameters)
        text = ctype.base + " *" * len(ctype.layers)
        if ctype.layers == () and ctype.base == "void":
            if not has_outputs and not self.directives.effect:
                raise RefusedError(
                    "has no output: no array that is not const, no pointer and no returned "
                    "value; '#pragma jaxc effect' allows a function called for its effect"
                )
            return Result.NOTHING, parameters
        if self.grid:
            raise RefusedError(
                f"is called for each point of a grid and returns '{text}'; it must return "
                "void, and write its results into output parameters"
            )
        if ctype.layers == ("*",) and ctype.base == "char" and ctype.is_const and has_outputs:
            return Result.TEXT, parameters
        if ctype.layers or ctype.base not in ELEMENTS:
            raise RefusedError(
                f"returns '{text}', which no JAX array holds; write a small C file over it "
                "that returns numbers or fills arrays"
            )
        if has_outputs and ctype.base == "int":
            return Result.STATUS, parameters
        if has_outputs and ctype.base not in FLOATING:
            raise RefusedError(
                f"returns '{text}' beside output parameters; there 'int' is a status, "
                "'const char *' an error's text, and a floating type one more output"
            )
        value = Parameter("return", ctype.base, Role.OUTPUT, 0, 0, (), -1, ctype.base)
        return Result.VALUE, [value, *parameters]

    def _finish(self, result: Result, parameters: list[Parameter]) -> Description:
        operands = [(k, p) for k, p in enumerate(parameters) if p.role in OPERANDS]
        given = {self.dims[n] for n in self.dims if self.directives.has("static", n)}
        steps, given = bounds.solve(operands, len(self.dims), given)
        ctypes = dict(zip(self.names, self.ctypes, strict=True))
        node = self.candidate.node
        assert node is not None
        generated = " ".join(bounds.text(node).split())
        prototype = re.sub(r"^extern ", "", generated)
        return Description(
            name=self.candidate.name,
            prototype=prototype,
            file=self.candidate.item.file,
            line=self.candidate.item.line,
            overload=self.directives.overload,
            serial=self.directives.serial,
            effect=self.directives.effect,
            parameters=tuple(parameters),
            dims=tuple(
                Dim(name, 0, 0, number in given, ctypes[name].base)
                for name, number in self.dims.items()
            ),
            solve=steps,
            result=result,
            checks=tuple(self.enumerators.items()),
        )
