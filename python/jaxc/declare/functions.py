"""Function descriptions of C files: the prototype is the interface."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from pycparser import c_ast, c_parser

from jaxc.declare import bounds, pragmas
from jaxc.declare.errors import DeclarationError
from jaxc.declare.items import Item, Kind, Pragma, Text, blank_extensions, split
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


@dataclasses.dataclass(frozen=True)
class Unit:
    """One C file as the compiler sees it.

    Attributes:
      path: the file's name, as in the line markers of ``preprocessed``.
      preprocessed: output of the compiler's preprocessor.
      source: the file's own text, for the comments.
    """

    path: str
    preprocessed: str
    source: str


class _RefusedError(Exception):
    """Why a function cannot be called from JAX."""


@dataclasses.dataclass
class _Candidate:
    """One declaration of a function in one of the user's files."""

    name: str
    unit: int
    item: Item
    directives: pragmas.Directives
    types: Types
    node: c_ast.Decl | None = None
    problem: str | None = None  # why it could not be parsed


_NAME_BEFORE_PAREN = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_NOT_FUNCTIONS = frozenset({"_Static_assert", "static_assert", "asm", "__asm__"})


def declare(units: Sequence[Unit]) -> list[list[Description]]:
    """Describes the functions of C files that are compiled together.

    A function is exposed when one of the files defines it, or when a file that defines no
    function declares it. Of several declarations the last that gives every pointer a
    bound is used, so a redeclaration with bounds serves a library's own file.

    Returns:
      For each unit the functions whose chosen declaration stands in it, in file order.

    Raises:
      DeclarationError: for a pragma that is unknown, misplaced or names no parameter.
    """
    candidates: dict[str, list[_Candidate]] = {}
    defined: set[str] = set()
    hidden: set[str] = set()
    for number, unit in enumerate(units):
        found, has_definitions = _candidates(number, unit)
        for candidate in found:
            candidates.setdefault(candidate.name, []).append(candidate)
            if candidate.item.kind is not Kind.DECLARATION or not has_definitions:
                defined.add(candidate.name)
            if candidate.directives.hide or _is_static(candidate.item.text):
                hidden.add(candidate.name)
    out: list[list[Description]] = [[] for _ in units]
    for name, found in candidates.items():
        if name in defined and name not in hidden:
            unit, description = _describe(found, units)
            out[unit].append(description)
    for descriptions in out:
        descriptions.sort(key=lambda description: description.line)
    return out


def _is_static(text: str) -> bool:
    return re.search(r"\bstatic\b", text.partition("(")[0]) is not None


def _candidates(number: int, unit: Unit) -> tuple[list[_Candidate], bool]:
    """Function declarations of the unit's own file, and whether it defines any."""
    text = Text(unit.preprocessed)
    types = Types(text.text)
    waiting = [pragma for pragma in text.pragmas if pragma.file == unit.path]
    out: list[_Candidate] = []
    has_definitions = False
    for item in split(text):
        if item.file != unit.path:
            continue
        before = [pragma for pragma in waiting if pragma.offset <= item.start]
        waiting = waiting[len(before) :]
        if waiting and waiting[0].offset < item.end:
            raise _misplaced(waiting[0], "stands inside a declaration or a body")
        if item.kind is Kind.STRAY_BODY:
            has_definitions = True
            _mark_old_style(out)
            continue
        name = _function_name(item)
        if name is None:
            if before:
                raise _misplaced(before[-1], "does not stand before a function")
            continue
        has_definitions |= item.kind is Kind.DEFINITION
        out.extend(_parsed(name, number, item, pragmas.parse(before), types))
    if waiting:
        raise _misplaced(waiting[0], "does not stand before a function")
    return out, has_definitions


def _misplaced(pragma: Pragma, text: str) -> DeclarationError:
    return DeclarationError(
        pragma.file, pragma.line, f"'#pragma jaxc {pragma.text.strip()}' {text}"
    )


def _function_name(item: Item) -> str | None:
    """The declared function's name, without parsing; None for other items."""
    clean = blank_extensions(item.text)
    if clean.lstrip().startswith("typedef") or "(" not in clean:
        return None
    head = clean.partition("=")[0] if item.kind is Kind.DECLARATION else clean
    match = _NAME_BEFORE_PAREN.search(head)
    if match is None or match[1] in _NOT_FUNCTIONS or match.start() == 0:
        return None
    return match[1]


_OLD_STYLE = (
    "is an old-style definition without a prototype; declare it with one, "
    "'double {0}(double x);', or write its parameters with their types"
)


def _mark_old_style(out: list[_Candidate]) -> None:
    """The body that was found belongs to the last item that looks like a function."""
    if out:
        out[-1].problem = _OLD_STYLE.format(out[-1].name)
        out[-1].item = dataclasses.replace(out[-1].item, kind=Kind.DEFINITION)


def _parsed(
    name: str, number: int, item: Item, directives: pragmas.Directives, types: Types
) -> list[_Candidate]:
    """The functions that an item declares, usually one."""
    candidate = _Candidate(name, number, item, directives, types)
    clean = blank_extensions(item.text)
    if not clean.rstrip().endswith(")") and item.kind is Kind.DEFINITION:
        candidate.problem = _OLD_STYLE.format(name)
        return [candidate]
    try:
        node = types.parse(item.text)
    except c_parser.ParseError as error:
        reason = str(error).lstrip(":0123456789 ")
        candidate.problem = f"has a declaration that the parser of C cannot read ({reason})"
        return [candidate]
    if not isinstance(node, c_ast.Decl) or not isinstance(node.type, c_ast.FuncDecl):
        if isinstance(node, c_ast.Decl) and item.kind is Kind.DEFINITION:
            candidate.problem = "returns a pointer, which no JAX array is"
            return [candidate]
        return []
    candidate.name = node.name
    candidate.node = node
    return [candidate]


def _describe(found: list[_Candidate], units: Sequence[Unit]) -> tuple[int, Description]:
    """The description of one function from all its declarations."""
    directives = pragmas.Directives()
    for candidate in found:
        directives.merge(candidate.directives)
    definition = next((c for c in found if c.item.kind is not Kind.DECLARATION), found[-1])
    refusal = None
    for candidate in [*reversed(found), definition]:
        try:
            reader = _Reader(candidate, directives)
            description = reader.read()
            _check_redeclaration(candidate, definition)
        except _RefusedError as error:
            refusal = str(error)  # the definition's own, which comes last
            continue
        doc = _comment(units[candidate.unit].source, candidate.item.line)
        if doc is None:
            doc = _comment(units[definition.unit].source, definition.item.line)
        return candidate.unit, dataclasses.replace(description, doc=doc)
    return definition.unit, Description(
        name=definition.name,
        prototype=" ".join(definition.item.text.split()),
        file=definition.item.file,
        line=definition.item.line,
        doc=_comment(units[definition.unit].source, definition.item.line),
        refusal=refusal,
    )


def _check_redeclaration(chosen: _Candidate, definition: _Candidate) -> None:
    """Compares types across files; inside one file the compiler does it."""
    if chosen.unit == definition.unit or definition.node is None or chosen.node is None:
        return
    ours, theirs = _shape(chosen), _shape(definition)
    if ours is not None and theirs is not None and ours != theirs:
        raise DeclarationError(
            chosen.item.file,
            chosen.item.line,
            f"'{chosen.name}' is declared as ({', '.join(ours)}) but "
            f"{definition.item.file}:{definition.item.line} defines it as "
            f"({', '.join(theirs)})",
        )


def _shape(candidate: _Candidate) -> list[str] | None:
    """Types of result and parameters as a linker would have to know them."""
    assert candidate.node is not None
    function = candidate.node.type
    out = []
    try:
        for node in [function.type, *(p.type for p in _parameters(function))]:
            ctype = candidate.types.resolve(node)
            base = re.sub(r"^(struct|union) .*", "struct", ctype.base)
            out.append(base + (" *" if ctype.layers else ""))
    except UnknownTypeError:
        return None
    return out


def _parameters(function: c_ast.FuncDecl) -> list[c_ast.Node]:
    parameters = list(function.args.params) if function.args is not None else []
    if len(parameters) == 1 and isinstance(parameters[0], c_ast.Typename):
        inner = parameters[0].type
        if isinstance(inner, c_ast.TypeDecl) and inner.type.names == ["void"]:
            return []
    return parameters


_COMMENT_END = re.compile(r"\*/\s*$")


def _comment(source: str, line: int) -> str | None:
    """The comment directly above a line, without its decoration."""
    lines = source.splitlines()[: line - 1]
    while lines and re.match(r"\s*#\s*pragma\b", lines[-1]):
        lines.pop()
    if not lines:
        return None
    if re.match(r"\s*//", lines[-1]):
        block = []
        while lines and (match := re.match(r"\s*//[/!]?\s?(.*)", lines[-1])):
            block.append(match[1])
            lines.pop()
        return "\n".join(reversed(block)).strip() or None
    if not _COMMENT_END.search(lines[-1]):
        return None
    text = "\n".join(lines)
    start = text.rfind("/*")
    if start < 0:
        return None
    body = re.sub(r"^/\*+!?|\*+/\s*$", "", text[start:])
    body = "\n".join(re.sub(r"^\s*\*? ?", "", row) for row in body.splitlines())
    return body.strip() or None


class _Reader:
    """Reads one declaration."""

    def __init__(self, candidate: _Candidate, directives: pragmas.Directives):
        self.candidate = candidate
        self.directives = directives
        self.types = candidate.types
        self.enumerators: dict[str, int] = {}

    def read(self) -> Description:
        candidate = self.candidate
        if candidate.problem is not None:
            raise _RefusedError(candidate.problem)
        assert candidate.node is not None
        specifiers = candidate.node.funcspec or []
        if "inline" in specifiers and "extern" not in (candidate.node.storage or []):
            raise _RefusedError(
                "is 'inline' without 'static' or 'extern', which C gives no definition "
                "to call; drop 'inline' (the compiler inlines it anyway)"
            )
        self.function: c_ast.FuncDecl = candidate.node.type
        if self.function.args is None:
            raise _RefusedError("has no prototype: write (void) for no parameters")
        self._read_names()
        self._check_pragma_names()
        self._find_dims()
        parameters = [self._parameter(k) for k in range(len(self.nodes))]
        result, parameters = self._result(parameters)
        if len(parameters) > MAX_PARAMETERS:
            raise _RefusedError(f"has more than {MAX_PARAMETERS} parameters")
        return self._finish(result, parameters)

    def _read_names(self) -> None:
        self.nodes = _parameters(self.function)
        self.names: list[str] = []
        self.ctypes: list[CType] = []
        for position, node in enumerate(self.nodes):
            if isinstance(node, c_ast.EllipsisParam):
                raise _RefusedError("takes a variable number of arguments")
            if isinstance(node, c_ast.ID):
                raise _RefusedError(_OLD_STYLE.format(self.candidate.name))
            self.names.append(node.name or f"arg{position}")
            try:
                self.ctypes.append(self.types.resolve(node.type))
            except UnknownTypeError as error:
                raise _RefusedError(
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
                    for other in ("static", "inout", "scratch")
                    if other != directive and self.directives.has(other, name)
                ]
                if directive != "scalar" and others:
                    raise DeclarationError(
                        pragma.file,
                        pragma.line,
                        f"parameter '{name}' of '{self.candidate.name}' cannot be both "
                        f"{directive} and {others[0]}",
                    )

    def _find_dims(self) -> None:
        """Integer parameters that stand in a bound are dimensions."""
        in_bounds: set[str] = set()
        for ctype in self.ctypes:
            for layer in ctype.layers:
                if isinstance(layer, c_ast.Node):
                    in_bounds.update(bounds.names(layer))
        self.dims: dict[str, int] = {}
        for name, ctype in zip(self.names, self.ctypes, strict=True):
            if name in in_bounds and not ctype.layers and ctype.base in INTEGERS:
                self.dims[name] = len(self.dims)
        if len(self.dims) > MAX_DIMS:
            raise _RefusedError(f"has more than {MAX_DIMS} dimensions")
        self.all_integers_are_dims = all(
            name in self.dims
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
        if has("static", name):
            return self._static(name, declaration, ctype)
        if name in self.dims:
            return Parameter(
                name, declaration, Role.DIM, 0, 0, (), self.dims[name], ctype.base
            )
        if ctype.base not in ELEMENTS or "()" in ctype.layers:
            raise _RefusedError(self._unsupported(name, declaration, ctype))
        core = self._core(name, declaration, ctype)
        if not ctype.layers:
            for directive in ("inout", "scratch", "scalar"):
                if has(directive, name):
                    raise _RefusedError(
                        f"has parameter '{name}' ({declaration}) that is passed by value "
                        f"and cannot be {directive}"
                    )
            role = Role.INPUT
        elif has("scratch", name) or has("inout", name):
            role = Role.SCRATCH if has("scratch", name) else Role.INOUT
            if ctype.is_const:
                raise _RefusedError(
                    f"has parameter '{name}' ({declaration}) that is const and cannot be "
                    f"{role.name.lower()}"
                )
        else:
            role = Role.INPUT if ctype.is_const else Role.OUTPUT
        return Parameter(name, declaration, role, 0, len(core), core, -1, ctype.base)

    def _unsupported(self, name: str, declaration: str, ctype: CType) -> str:
        kind = "a function pointer" if "()" in ctype.layers else f"type '{ctype.base}'"
        return (
            f"has parameter '{name}' ({declaration}) of {kind}, which no JAX array holds; "
            "write a C function around it with numbers and arrays"
        )

    def _core(self, name: str, declaration: str, ctype: CType) -> tuple[Bound, ...]:
        """Core dims of a parameter; () when it is one value."""
        if not ctype.layers:
            return ()
        layers = ctype.layers
        if "*" in layers or layers[0] is None:
            if layers != ("*",) and layers != (None,):
                raise _RefusedError(
                    f"has parameter '{name}' ({declaration}) with a pointer or an empty "
                    f"bound inside; write all its bounds: {ctype.base} {name}[n][k]"
                )
            if self.directives.has("scalar", name) or self._is_plain_output(ctype):
                return ()
            element = re.sub(r"\s*[*\[].*", "", declaration)
            element = element if "*" in declaration else element.rpartition(" ")[0]
            value = re.sub(r"\bconst\s+", "", element)
            raise _RefusedError(
                f"has parameter '{name}' ({declaration}) without a bound: write "
                f"'{element} {name}[n]' for an array of n, '{value} {name}' for a value, or "
                f"'#pragma jaxc scalar({name})' for a pointer to one value"
            )
        if self.directives.has("scalar", name):
            raise _RefusedError(
                f"has parameter '{name}' ({declaration}) that has a bound and cannot be "
                "scalar"
            )
        out = []
        for layer in layers:
            assert isinstance(layer, c_ast.Node)
            try:
                bound = bounds.compile_bound(
                    layer, self.dims, self.types.enumerator, self.enumerators
                )
                if bound.constant is not None and bound.constant < 0:
                    raise bounds.BoundError(f"bound '{bound.text}' is negative")
            except (bounds.BoundError, ZeroDivisionError) as error:
                raise _RefusedError(f"has parameter '{name}' ({declaration}): {error}") from None
            out.append(bound)
        return tuple(out)

    def _is_plain_output(self, ctype: CType) -> bool:
        """A pointer to one result: nothing in the prototype could be its length."""
        return ctype.layers == ("*",) and not ctype.is_const and self.all_integers_are_dims

    def _static(self, name: str, declaration: str, ctype: CType) -> Parameter:
        if name in self.dims:
            return Parameter(
                name, declaration, Role.DIM, 0, 0, (), self.dims[name], ctype.base
            )
        if ctype.layers == ("*",) and ctype.base == "char" and ctype.is_const:
            return Parameter(name, declaration, Role.STATIC, STRING, 0, (), -1, "char")
        if ctype.layers or ctype.base not in ELEMENTS or ctype.base in (
            "_Float16", "jaxc_bf16", "jaxc_f8e4m3fn", "jaxc_f8e5m2",
        ):  # fmt: skip
            raise _RefusedError(
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
            raise _RefusedError(f"returns the unknown type '{error}'") from None
        has_outputs = any(p.role in RESULTS for p in parameters)
        text = ctype.base + " *" * len(ctype.layers)
        if ctype.layers == () and ctype.base == "void":
            if not has_outputs and not self.directives.effect:
                raise _RefusedError(
                    "has no output: no array that is not const, no pointer and no returned "
                    "value; '#pragma jaxc effect' allows a function called for its effect"
                )
            return Result.NOTHING, parameters
        if ctype.layers == ("*",) and ctype.base == "char" and ctype.is_const and has_outputs:
            return Result.TEXT, parameters
        if ctype.layers or ctype.base not in ELEMENTS:
            raise _RefusedError(f"returns '{text}', which no JAX array holds")
        if has_outputs and ctype.base == "int":
            return Result.STATUS, parameters
        if has_outputs and ctype.base not in FLOATING:
            raise _RefusedError(
                f"returns '{text}' beside output parameters; there 'int' is a status, "
                "'const char *' an error's text, and a floating type one more output"
            )
        value = Parameter(
            "return", ctype.base, Role.OUTPUT, 0, 0, (), -1, ctype.base
        )
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
