"""Cut preprocessed C into its top-level items without understanding them.

A real file has bodies, attributes and extensions that no parser of plain C reads. Only
braces, parentheses, semicolons and literals are looked at here, so whatever stands in a
body or a neighbour, each declaration comes out whole and can be parsed alone.
"""

from __future__ import annotations

import bisect
import dataclasses
import enum
import re

_MARKER = re.compile(r'#\s*(?:line\s+)?(\d+)\s+"((?:\\.|[^"\\])*)"([ \d]*)')
_PRAGMA = re.compile(r"\s*#\s*pragma\s+jaxc\b\s*(.*)")
_STRUCTURE = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}();=]')
_AGGREGATE = re.compile(r"\b(?:struct|union|enum)\b\s*\w*\s*$")
_LEADING_SPACE = re.compile(r"\s*")


class Kind(enum.Enum):
    DECLARATION = "declaration"
    DEFINITION = "definition"  # a function with its body
    STRAY_BODY = "stray body"  # the braces of an old-style definition


@dataclasses.dataclass(frozen=True)
class Item:
    """A top-level item. ``text`` has no body and no closing semicolon.

    ``start`` and ``end`` are offsets in Text.text; file and line are those of its start.
    """

    kind: Kind
    text: str
    file: str
    line: int
    start: int
    end: int


@dataclasses.dataclass(frozen=True)
class Pragma:
    """A ``#pragma jaxc`` line; ``offset`` says where in Text.text it stood."""

    text: str
    file: str
    line: int
    offset: int


class Text:
    """Preprocessed text without its markers, which remembers where each line was."""

    def __init__(self, preprocessed: str):
        lines: list[str] = []
        self._offsets: list[int] = []
        self._origins: list[tuple[str, int]] = []
        self.pragmas: list[Pragma] = []
        user: list[str] = []
        in_system_header = False
        file, number, offset = "", 1, 0
        for line in preprocessed.splitlines():
            stripped = line.lstrip()
            if stripped.startswith("#"):
                if marker := _MARKER.match(stripped):
                    file, number = _unescape(marker[2]), int(marker[1])
                    in_system_header = "3" in marker[3].split()
                    continue
                if not in_system_header:
                    user.append(stripped)
                if pragma := _PRAGMA.match(line):
                    self.pragmas.append(Pragma(pragma[1], file, number, offset))
                number += 1
                continue
            if stripped:
                self._offsets.append(offset)
                self._origins.append((file, number))
                lines.append(line)
                offset += len(line) + 1
                if not in_system_header:
                    user.append(line)
            number += 1
        self.text = "\n".join(lines) + "\n"
        #: What the user's files say after preprocessing, without system headers and
        #: without names and numbers of lines: equal on machines with the same source.
        self.user_text = "\n".join(user) + "\n"

    def origin(self, offset: int) -> tuple[str, int]:
        """File and line of a place in ``text``."""
        index = bisect.bisect_right(self._offsets, offset) - 1
        return self._origins[index] if index >= 0 else ("", 1)


def _unescape(path: str) -> str:
    return re.sub(r"\\(.)", r"\1", path) if "\\" in path else path


def split(text: Text) -> list[Item]:
    """The top-level items of ``text``, in order."""
    items: list[Item] = []
    source = text.text
    start = braces = parens = 0
    assigned = False  # an initializer follows: its braces are no body
    body_at = -1
    for match in _STRUCTURE.finditer(source):
        token, at = match[0], match.start()
        if token == "(":
            parens += 1
        elif token == ")":
            parens = max(parens - 1, 0)
        elif token == "{":
            at_top = braces == 0 and parens == 0 and not assigned and body_at < 0
            if at_top and not _AGGREGATE.search(blank_extensions(source[start:at])):
                body_at = at
            braces += 1
        elif token == "}":
            braces = max(braces - 1, 0)
            if braces == 0 and body_at >= 0:
                _append(items, text, start, body_at, match.end(), body=True)
                start, body_at, parens, assigned = match.end(), -1, 0, False
        elif braces == 0 and parens == 0:
            if token == "=":
                assigned = True
            elif token == ";":
                _append(items, text, start, at, match.end(), body=False)
                start, assigned = match.end(), False
    return items


def _append(items: list[Item], text: Text, start: int, stop: int, end: int, body: bool) -> None:
    space = _LEADING_SPACE.match(text.text, start, stop)
    begin = space.end() if space else start
    content = text.text[begin:stop]
    if not content and not body:
        return
    kind = Kind.DECLARATION
    if body:
        kind = Kind.DEFINITION if "(" in content else Kind.STRAY_BODY
    file, line = text.origin(begin)
    items.append(Item(kind, content, file, line, begin, end))


_CALL_LIKE = re.compile(
    r"\b(?:__attribute__|__attribute|__asm__|__asm|asm|__declspec|_Alignas|alignas)\s*\("
)
_WORDS = {
    "__restrict": "", "__restrict__": "", "__extension__": "", "_Noreturn": "",
    "__volatile__": "volatile", "__volatile": "volatile", "__const": "const",
    "__const__": "const", "__signed__": "signed", "__signed": "signed",
    "__inline": "inline", "__inline__": "inline", "_Nonnull": "", "_Nullable": "",
    "__complex__": "_Complex", "__complex": "_Complex", "_Thread_local": "", "__thread": "",
    "bool": "_Bool", "noreturn": "",
}  # fmt: skip
_WORD = re.compile(r"\b(?:" + "|".join(_WORDS) + r")\b")
_C23_ATTRIBUTE = re.compile(r"\[\[.*?\]\]", re.DOTALL)


def blank_extensions(text: str) -> str:
    """The declaration in standard C: attributes and compiler keywords taken out."""
    if "[[" in text:
        text = _C23_ATTRIBUTE.sub(" ", text)
    while match := _CALL_LIKE.search(text):
        depth = 1
        at = match.end()
        while at < len(text) and depth:
            if text[at] == '"':
                closing = re.compile(r'"(?:\\.|[^"\\])*"').match(text, at)
                at = closing.end() if closing else len(text)
                continue
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        text = text[: match.start()] + " " + text[at:]
    return _WORD.sub(lambda match: _WORDS[match[0]], text)
