"""C types: typedefs, enumerators, and what a declarator amounts to."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from pycparser import c_ast, c_parser

from jaxc.declare.items import blank_extensions

#: Words of a C type, sorted -> its canonical name. Sizes are the compiler's business.
CANONICAL = {
    tuple(sorted(words.split())): name
    for name, spellings in {
        "void": ["void"],
        "_Bool": ["_Bool"],
        "char": ["char"],
        "signed char": ["signed char"],
        "unsigned char": ["unsigned char"],
        "short": ["short", "short int", "signed short", "signed short int"],
        "unsigned short": ["unsigned short", "unsigned short int"],
        "int": ["int", "signed", "signed int"],
        "unsigned int": ["unsigned", "unsigned int"],
        "long": ["long", "long int", "signed long", "signed long int"],
        "unsigned long": ["unsigned long", "unsigned long int"],
        "long long": [
            "long long", "long long int", "signed long long", "signed long long int",
        ],
        "unsigned long long": ["unsigned long long", "unsigned long long int"],
        "float": ["float"],
        "double": ["double"],
        "long double": ["long double"],
        "float _Complex": ["float _Complex"],
        "double _Complex": ["double _Complex", "_Complex"],
        "long double _Complex": ["long double _Complex"],
    }.items()
    for words in spellings
}  # fmt: skip

INTEGERS = frozenset(
    f"{sign}{size}"
    for sign in ("", "unsigned ")
    for size in ("char", "short", "int", "long", "long long")
) | {"signed char"}

#: Types that the C compiler or <jaxc/types.h> knows by these very names.
NAMED = {
    "_Float16": "_Float16",
    "_Float32": "float",
    "_Float64": "double",
    "jaxc_bf16": "jaxc_bf16",
    "jaxc_f8e4m3fn": "jaxc_f8e4m3fn",
    "jaxc_f8e5m2": "jaxc_f8e5m2",
}
#: Known only to be refused by name, not as a syntax error.
_FOREIGN = frozenset({"_Float128", "__float128", "__builtin_va_list", "__fp16", "__bf16"})

FLOATING = frozenset({"float", "double", "float _Complex", "double _Complex", *NAMED.values()})
ELEMENTS = INTEGERS | FLOATING | {"_Bool"}


@dataclasses.dataclass(frozen=True)
class CType:
    """A type with its layers, outermost first.

    Attributes:
      layers: "*" for a pointer, "()" for a function, else the bound of an array: an
        expression or None for an empty one.
      base: canonical name of what is inside, or a description such as "struct point".
      is_const: of the innermost type.
    """

    layers: tuple[c_ast.Node | str | None, ...]
    base: str
    is_const: bool


class UnknownTypeError(Exception):
    """A name that no typedef explains."""


_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_TYPEDEF = re.compile(r"\btypedef\b")
_ENUM = re.compile(r"\benum\b[^;{}()=]*\{([^{}]*)\}")
_OUTSIDE = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}()]|[A-Za-z_]\w*')
_FUNCTION_POINTER = re.compile(r"\(\s*\*+\s*(?:const\s+)?([A-Za-z_]\w*)\s*(?:\[[^]]*\]\s*)*\)")


class Types:
    """Typedefs and enumerators of a preprocessed text, found when they are asked for."""

    def __init__(self, text: str):
        self._text = text
        self._typedefs: dict[str, str] | None = None
        self._enumerators: dict[str, int | None] | None = None
        self._resolved: dict[str, CType] = {}

    def parse(self, declaration: str) -> c_ast.Decl | c_ast.Typedef:
        """Parses one declaration; names that are types anywhere are types in it.

        Raises:
          pycparser's ParseError.
        """
        clean = blank_extensions(declaration)
        prelude = self._prelude(_IDENTIFIER.findall(clean))
        tree = c_parser.CParser().parse(prelude + clean + ";", "")
        node: c_ast.Decl | c_ast.Typedef = tree.ext[-1]
        return node

    def resolve(self, node: c_ast.Node, is_const: bool = False) -> CType:
        """The type behind all typedefs.

        Raises:
          UnknownTypeError: for a name that is no type of this text.
        """
        layers: list[c_ast.Node | str | None] = []
        while not isinstance(node, c_ast.TypeDecl):
            if isinstance(node, c_ast.PtrDecl):
                layers.append("*")
            elif isinstance(node, c_ast.ArrayDecl):
                layers.append(node.dim)
            elif isinstance(node, c_ast.FuncDecl):
                layers.append("()")
            else:
                raise UnknownTypeError(type(node).__name__)
            node = node.type
        is_const = is_const or "const" in (node.quals or [])
        inner = node.type
        if isinstance(inner, (c_ast.Struct, c_ast.Union)):
            word = "struct" if isinstance(inner, c_ast.Struct) else "union"
            return CType(tuple(layers), f"{word} {inner.name or '{...}'}", is_const)
        if isinstance(inner, c_ast.Enum):
            return CType(tuple(layers), "int", is_const)
        words = inner.names
        canonical = CANONICAL.get(tuple(sorted(words)))
        if canonical is None:
            target = self._typedef(" ".join(words))
            return CType((*layers, *target.layers), target.base, is_const or target.is_const)
        return CType(tuple(layers), canonical, is_const)

    def _prelude(self, identifiers: Iterable[str]) -> str:
        """Makes the parser take those identifiers that are types for types."""
        names = (
            name
            for name in dict.fromkeys(identifiers)
            if name in NAMED or name in _FOREIGN or name in self.typedefs
        )
        return "".join(f"typedef int {name};" for name in names)

    @property
    def typedefs(self) -> dict[str, str]:
        """Name -> text of the typedef that makes it."""
        if self._typedefs is None:
            self._typedefs = {}
            for match in _TYPEDEF.finditer(self._text):
                definition = _up_to_semicolon(self._text, match.start())
                for name in _declared_names(definition):
                    self._typedefs[name] = definition
        return self._typedefs

    def _typedef(self, name: str) -> CType:
        if name in self._resolved:
            return self._resolved[name]
        definition = self.typedefs.get(name)
        if name in NAMED:
            out = CType((), NAMED[name], False)
        elif definition is None or name in _FOREIGN:
            raise UnknownTypeError(name)
        elif match := re.match(r"typedef\s+(struct|union)\b", blank_extensions(definition)):
            out = CType((), f"{match[1]} {name}", False)
            if definition.rstrip().endswith("]") or "*" in definition.rpartition("}")[2]:
                out = CType(("*",), out.base, False)
        elif re.match(r"typedef\s+enum\b", blank_extensions(definition)):
            out = CType((), "int", False)
        else:
            out = self._parse_typedef(name, definition)
        self._resolved[name] = out
        return out

    def _parse_typedef(self, name: str, definition: str) -> CType:
        clean = blank_extensions(definition)
        own = set(_declared_names(definition))
        prelude = self._prelude(n for n in _IDENTIFIER.findall(clean) if n not in own)
        try:
            tree = c_parser.CParser().parse(prelude + clean + ";", "")
        except c_parser.ParseError as error:
            raise UnknownTypeError(name) from error
        for node in tree.ext:
            if isinstance(node, c_ast.Typedef) and node.name == name:
                return self.resolve(node.type)
        raise UnknownTypeError(name)

    def enumerator(self, name: str) -> int | None:
        """Value of an enumeration constant; None when ``name`` is none, or too complex."""
        if self._enumerators is None:
            self._enumerators = {}
            for match in _ENUM.finditer(self._text):
                self._read_enum(match[1])
        return self._enumerators.get(name)

    def is_declared(self, name: str, end: int) -> bool:
        """Whether text before the place ``end`` declares a name outside of functions."""
        self.enumerator(name)
        assert self._enumerators is not None
        if name in self._enumerators:
            return True
        depth = 0
        for match in _OUTSIDE.finditer(self._text, 0, end):
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(match[0], 0)
            if depth == 0 and match[0] == name:
                return True
        return False

    def _read_enum(self, body: str) -> None:
        assert self._enumerators is not None
        following: int | None = 0
        for entry in body.split(","):
            name, _, expression = (part.strip() for part in entry.partition("="))
            if not name:
                continue
            name = name.split()[0]
            if expression:
                following = _constant(expression, self._enumerators)
            self._enumerators[name] = following
            following = None if following is None else following + 1


def _constant(expression: str, names: dict[str, int | None]) -> int | None:
    """Value of an integer constant expression, None if it is beyond simple arithmetic."""
    try:
        tree = c_parser.CParser().parse(f"int x[{expression}];", "")
        return _evaluate(tree.ext[0].type.dim, names)
    except (c_parser.ParseError, ArithmeticError, ValueError):
        return None


def integer_literal(text: str) -> int:
    """Value of a C integer or character constant. Raises ValueError for others."""
    if text.startswith("'") and len(text) == 3:
        return ord(text[1])
    digits = text.rstrip("uUlL")
    if digits.startswith("0") and digits.isdigit():
        return int(digits, 8)
    return int(digits, 0)


_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "|": lambda a, b: a | b,
    "&": lambda a, b: a & b,
}


def _evaluate(node: c_ast.Node, names: dict[str, int | None]) -> int | None:
    if isinstance(node, c_ast.Constant):
        return integer_literal(node.value)
    if isinstance(node, c_ast.ID):
        return names.get(node.name)
    if isinstance(node, c_ast.UnaryOp) and node.op in "+-":
        value = _evaluate(node.expr, names)
        return value if value is None or node.op == "+" else -value
    if isinstance(node, c_ast.BinaryOp) and node.op in _OPERATORS:
        left, right = _evaluate(node.left, names), _evaluate(node.right, names)
        if left is not None and right is not None:
            return int(_OPERATORS[node.op](left, right))
    return None


def _up_to_semicolon(text: str, start: int) -> str:
    depth = 0
    for match in re.compile(r"[{};]").finditer(text, start):
        if match[0] == ";" and depth == 0:
            return text[start : match.start()]
        depth += {"{": 1, "}": -1, ";": 0}[match[0]]
    return text[start:]


def _declared_names(definition: str) -> list[str]:
    """The names that a typedef makes: ``typedef struct s S, *P;`` makes two."""
    clean = blank_extensions(definition)
    if pointer := _FUNCTION_POINTER.search(clean.rpartition("}")[2]):
        return [pointer[1]]
    names = []
    for part in _split_commas(clean.rpartition("}")[2]):
        part = re.sub(r"\[[^]]*\]", "", part)
        function = re.match(r"(.*?[A-Za-z_]\w*)\s*\(", part, re.DOTALL)
        words = _IDENTIFIER.findall(function[1] if function else part)
        if words:
            names.append(words[-1])
    return names


def _split_commas(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return parts
