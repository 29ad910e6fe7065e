"""Function descriptions of C files: the prototype is the interface."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence

from pycparser import c_ast, c_parser

from jaxc.declare import pragmas
from jaxc.declare.errors import DeclarationError
from jaxc.declare.items import Item, Kind, Pragma, Text, blank_extensions, split
from jaxc.declare.order import check_order
from jaxc.declare.prototype import OLD_STYLE, Candidate, Reader, RefusedError, parameters_of
from jaxc.declare.types import Types, UnknownTypeError
from jaxc.description import Description


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

    @functools.cached_property
    def text(self) -> Text:
        """The preprocessed text without its line markers; made once."""
        return Text(self.preprocessed)


_NAME_BEFORE_PAREN = re.compile(r"\b([A-Za-z_]\w*)\s*\(|\(\s*([A-Za-z_]\w*)\s*\)\s*\(")
_NOT_FUNCTIONS = frozenset({"_Static_assert", "static_assert", "asm", "__asm__"})


def declare(units: Sequence[Unit]) -> list[list[Description]]:
    """Describes the functions of C files that are compiled together.

    A function is exposed when one of the files defines it, when a file that defines no
    function declares it, and when a file declares what a file that it includes defines. Of
    several declarations the last that gives every pointer a bound is used, so a redeclaration
    with bounds serves a library's own file.

    Returns:
      For each unit the functions whose chosen declaration stands in it, in file order.

    Raises:
      DeclarationError: for a pragma that is unknown, misplaced or names no parameter, and
        for an array before the parameter that is its size.
    """
    candidates: dict[str, list[Candidate]] = {}
    defined: set[str] = set()
    hidden: set[str] = set()
    for number, unit in enumerate(units):
        found, has_definitions, included = _candidates(number, unit)
        static = {c.name for c in found if _is_static(c.item.text)}
        for candidate in found:
            if candidate.name in static:
                continue  # it has the name in its own file only
            candidates.setdefault(candidate.name, []).append(candidate)
            is_declaration = candidate.item.kind is Kind.DECLARATION
            if not is_declaration or not has_definitions or candidate.name in included:
                defined.add(candidate.name)
            if candidate.directives.hide:
                hidden.add(candidate.name)
    out: list[list[Description]] = [[] for _ in units]
    for name, found in candidates.items():
        if name in defined and name not in hidden:
            place, description = _describe(found, units)
            out[place].append(description)
    for descriptions in out:
        descriptions.sort(key=lambda description: description.line)
    return out


def require_declarations(units: Sequence[Unit]) -> None:
    """Refuses files that define functions, where prototypes are meant.

    Raises:
      DeclarationError: at the first body.
    """
    for unit in units:
        for item in split(unit.text):
            if item.file != unit.path or item.kind is Kind.DECLARATION:
                continue
            name = _function_name(item) or "a function"
            raise DeclarationError(
                item.file,
                item.line,
                f"'{name}' has a body, and jaxc.bind takes prototypes of functions that a "
                "library has; a C file of your own goes to jaxc.load or jaxc.compile with "
                "libraries=[...]",
            )


def _is_static(text: str) -> bool:
    return re.search(r"\bstatic\b", blank_extensions(text).partition("(")[0]) is not None


def _candidates(number: int, unit: Unit) -> tuple[list[Candidate], bool, set[str | None]]:
    """Function declarations of the unit's own file, and whether it defines any.

    The third is what included files define, where that matters.
    """
    text = unit.text
    types = Types(text.text)
    waiting = [pragma for pragma in text.pragmas if pragma.file == unit.path]
    out: list[Candidate] = []
    has_definitions = False
    included: list[Item] = []
    for item in split(text):
        if item.file != unit.path:
            if item.kind is Kind.DEFINITION:
                included.append(item)
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
    declared = {c.name for c in out if c.item.kind is Kind.DECLARATION and has_definitions}
    likely = (i for i in included if any(name in i.text for name in declared))
    return out, has_definitions, {_function_name(item) for item in likely}


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
    if match is None or match[1] in _NOT_FUNCTIONS:
        return None
    if match.start() == 0 and item.kind is Kind.DECLARATION:
        return None  # FOO(x); is what some macro has left
    return match[1] or match[2]


def _mark_old_style(out: list[Candidate]) -> None:
    """The body that was found belongs to the last item that looks like a function."""
    if out:
        out[-1].problem = OLD_STYLE.format(out[-1].name)
        out[-1].item = dataclasses.replace(out[-1].item, kind=Kind.DEFINITION)


def _parsed(
    name: str, number: int, item: Item, directives: pragmas.Directives, types: Types
) -> list[Candidate]:
    """The functions that an item declares, usually one."""
    candidate = Candidate(name, number, item, directives, types)
    clean = blank_extensions(item.text)
    if not clean.rstrip().endswith(")") and item.kind is Kind.DEFINITION:
        candidate.problem = OLD_STYLE.format(name)
        return [candidate]
    try:
        node = types.parse(item.text)
    except c_parser.ParseError as error:
        reason = str(error).lstrip(":0123456789 ")
        candidate.problem = f"has a declaration that the parser of C cannot read ({reason})"
        return [candidate]
    if not isinstance(node, c_ast.Decl) or not isinstance(node.type, c_ast.FuncDecl):
        if isinstance(node, c_ast.Decl) and item.kind is Kind.DEFINITION:
            candidate.problem = (
                "returns a pointer, which no JAX array is; write a small C file over it that "
                "returns numbers or fills arrays"
            )
            return [candidate]
        return []
    candidate.name = node.name
    candidate.node = node
    check_order(candidate)
    return [candidate]


_Place = tuple[int, Item]


def _describe(found: list[Candidate], units: Sequence[Unit]) -> tuple[int, Description]:
    """The description of one function from all its declarations."""
    directives = pragmas.Directives()
    for candidate in found:
        directives.merge(candidate.directives)
    definition = next((c for c in found if c.item.kind is not Kind.DECLARATION), found[-1])
    # A redeclaration in another file is there to be used, whichever file comes first.
    is_redeclaration = [c.unit != definition.unit for c in found]
    order = [c for c, is_one in zip(found, is_redeclaration, strict=True) if not is_one]
    order += [c for c, is_one in zip(found, is_redeclaration, strict=True) if is_one]
    refusals: list[tuple[_Place, str]] = []
    for candidate in reversed(order):
        try:
            reader = Reader(candidate, directives)
            description = reader.read()
            _check_redeclaration(candidate, definition)
        except RefusedError as error:
            place = (candidate.unit, candidate.item)
            refusals.append((place, str(error)))
            continue
        doc = _comment(units[candidate.unit].source, candidate.item.line)
        if doc is None:
            doc = _comment(units[definition.unit].source, definition.item.line)
        return candidate.unit, dataclasses.replace(description, doc=doc)
    (unit, item), refusal = refusals[0]
    return unit, Description(
        name=definition.name,
        prototype=" ".join(item.text.split()),
        file=item.file,
        line=item.line,
        doc=_comment(units[unit].source, item.line),
        refusal=refusal,
    )


def _check_redeclaration(chosen: Candidate, definition: Candidate) -> None:
    """Compares types across files; inside one file the compiler does it."""
    if chosen.unit == definition.unit or chosen.node is None:
        return
    if definition.node is None:
        _check_old_style(chosen, definition)
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


#: Types that an old-style definition receives as another one.
_PROMOTED = frozenset(
    {"float", "_Bool", "char", "signed char", "unsigned char", "short", "unsigned short"}
)


def _check_old_style(chosen: Candidate, definition: Candidate) -> None:
    """A definition without a prototype can be declared again unless arguments change type."""
    for base in (_shape(chosen) or [])[1:]:
        if base in _PROMOTED:
            raise RefusedError(
                f"is defined old-style at {definition.item.file}:{definition.item.line}, where "
                f"an argument of type {base} arrives as another type"
            )


def _shape(candidate: Candidate) -> list[str] | None:
    """Types of result and parameters as a linker would have to know them."""
    assert candidate.node is not None
    function, out = candidate.node.type, []
    try:
        for node in [function.type, *(p.type for p in parameters_of(function))]:
            ctype = candidate.types.resolve(node)
            base = re.sub(r"^(struct|union) .*", "struct", ctype.base)
            out.append(base + (" *" if ctype.layers else ""))
    except UnknownTypeError:
        return None
    return out


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
    if re.search("[\ud800-\udfff]", body):  # not UTF-8: Latin-1, as old files are
        body = body.encode("utf-8", "surrogateescape").decode("latin-1")
    body = "\n".join(re.sub(r"^\s*\*? ?", "", row) for row in body.splitlines())
    return body.strip() or None
