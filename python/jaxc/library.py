"""Kernel libraries: load C files or a built library and find their functions."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxc import _jaxc, targets  # type: ignore[attr-defined]
from jaxc.build import Options, Source, build, read_sources
from jaxc.description import Bound, Description, Dim, Parameter, Role
from jaxc.function import Function
from jaxc.link import link
from jaxc.overloads import OverloadedFunction

_SERIAL, _EFFECT = 1, 2
_NONDIFFERENTIABLE, _LINEAR, _ZERO = 1, 2, 4
_BUILT_SUFFIXES = (".so", ".dylib", ".dll")

StrPath = str | os.PathLike[str]


class Library:
    """C functions of one or more files, each a JAX function.

    Attributes of a library are its functions: ``library.rms_norm``; ``library["rms_norm"]``
    is the same. Iterating gives the names of those that can be called.
    """

    path: Path
    """The shared library that runs."""
    source: str
    """The C that was generated for it: row loops, then table and handlers."""

    def __init__(self, path: Path, recipe: tuple[Any, ...]):
        self.path = path
        name, hash_, version, functions = _open(path)
        self._name, self._hash, self._version = name, hash_, version
        self._descriptions = {}
        self._functions: dict[str, Function | OverloadedFunction] = {}
        overloads: dict[str, list[Function]] = {}
        for record in functions:
            description, entries = _description(record)
            self._descriptions[description.name] = description
            if description.refusal is not None:
                continue
            function = self._function(description, entries, record[-1], recipe)
            self._functions[description.name] = function
            if description.overload is not None:
                overloads.setdefault(description.overload, []).append(function)
        refused = {n: d.refusal for n, d in self._descriptions.items() if d.refusal is not None}
        plain = {n: f for n, f in self._functions.items() if isinstance(f, Function)}
        for function in plain.values():
            function.rules = link(function, plain, refused)
        for overload, members in overloads.items():
            if overload in self._functions:
                raise ValueError(
                    f"{members[0].description.file}: '{overload}' is a function and the name "
                    "of an overload"
                )
            self._functions[overload] = OverloadedFunction(overload, members)

    def _function(
        self,
        description: Description,
        entries: tuple[tuple[str, Any], ...],
        capsule: Any,
        recipe: tuple[Any, ...],
    ) -> Function:
        """A function with its handlers registered."""
        registered = {
            platform: _register(
                self._name, description, self._hash, platform, handler, self.path
            )
            for platform, handler in entries
        }
        name = description.name
        return Function(
            description, registered, str(self.path), (*recipe, name), dict(entries), capsule
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if name == "source":
            files = [*sorted(self.path.parent.glob("loops*.c")), self.path.parent / "table.c"]
            return "\n".join(f.read_text(errors="replace") for f in files if f.exists())
        try:
            return self._functions[name]
        except KeyError:
            raise AttributeError(self._why_not(name)) from None

    def __getitem__(self, name: str) -> Any:
        try:
            return self._functions[name]
        except KeyError:
            raise KeyError(self._why_not(name)) from None

    def _why_not(self, name: str) -> str:
        refused = self._descriptions.get(name)
        if refused is not None:
            return (
                f"{refused.file}:{refused.line}: '{name}' cannot be called from JAX: it "
                f"{refused.refusal}"
            )
        names = sorted(self._functions)
        close = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        return (
            f"library '{self._name}' has no function '{name}'{hint} It has: "
            f"{', '.join(names) or 'none'}. Functions that are static or come from an "
            "included file are not exposed"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), "source", *self._functions]

    def __repr__(self) -> str:
        rows = [f"  {f!r}" for f in self._functions.values()]
        rows += [
            f"  {name}: refused, it {d.refusal}"
            for name, d in self._descriptions.items()
            if d.refusal is not None
        ]
        return "\n".join([f"<jaxc library {self._name!r}, {len(self)} functions>", *rows])


def _open(path: Path) -> tuple[Any, ...]:
    try:
        out: tuple[Any, ...] = _jaxc.open_library(str(path))
        return out
    except OSError as error:
        hint = ""
        if "undefined symbol" in str(error):
            missing = str(error).rpartition("undefined symbol:")[2].split()[:1]
            if (path.parent / "unresolved").exists():
                missing = (path.parent / "unresolved").read_text().split()
            hint = (
                f". No file that was loaded defines {', '.join(repr(m) for m in missing)}: add "
                "the file, or the library that has it, libraries=[...]"
            )
        raise OSError(f"cannot load {path.name}: {error}{hint}") from error
    except ValueError as error:
        raise ValueError(f"cannot load {path}: {error}") from error


def _description(record: tuple[Any, ...]) -> tuple[Description, tuple[Any, ...]]:
    """The description of a function's record, which describe.c explains."""
    (name, overload, prototype, doc, file, line, flags, refusal, parameters, dims, solve,
     entries, _) = record  # fmt: skip
    description = Description(
        name=name,
        overload=overload,
        prototype=prototype,
        doc=doc,
        file=file,
        line=line,
        refusal=refusal,
        serial=bool(flags & _SERIAL),
        effect=bool(flags & _EFFECT),
        parameters=tuple(
            Parameter(name, declaration, Role(role), dtype, len(bounds),
                      tuple(Bound(text, steps) for text, steps in bounds), dim,
                      nondifferentiable=bool(marks & _NONDIFFERENTIABLE),
                      linear=bool(marks & _LINEAR), zero=bool(marks & _ZERO))
            for name, declaration, role, dtype, bounds, dim, marks in parameters
        ),
        dims=tuple(
            Dim(name, minimum, maximum, bool(static)) for name, minimum, maximum, static in dims
        ),
        solve=solve,
    )  # fmt: skip
    return description, entries


def _register(
    library: str, description: Description, hash_: str, platform: str, capsule: Any, path: Path
) -> str:
    """Registers a handler and returns its target's name.

    The name is that of the source and its flags, so that a program finds it in another
    process; a second build of the same source in this one is the same function.
    """
    target = targets.name(library, description.name, hash_)
    targets.register(target, description, platform, capsule, path)
    return target


def load(
    path: StrPath | Sequence[StrPath],
    *,
    define: Mapping[str, object] | None = None,
    include: Sequence[StrPath] = (),
    libraries: Sequence[StrPath] = (),
    flags: Sequence[str] = (),
    compiler: str | None = None,
) -> Library:
    """Makes JAX functions of the C functions in one or more files.

    Args:
      path: a C file, several that are compiled together, or a library built before.
      define: macros, ``{"N": 3, "FAST": None}``.
      include: folders for ``#include``.
      libraries: names (``"gsl"``) or paths of libraries to link with.
      flags: further flags for the compiler.
      compiler: its command; else $CC, gcc, clang, cc, or the ziglang package.

    Returns:
      The library. The files are compiled once; the result is kept in the user's cache
      folder, and a changed file makes a new library beside the old one.

    Raises:
      OSError: for a file that cannot be read or a library that the system cannot load.
      ValueError: for a ``#pragma jaxc`` that cannot be accepted.
      RuntimeError: when there is no compiler, or with the compiler's own message.

    Example:
      >>> rms_norm = jaxc.load("rms_norm.c").rms_norm
      >>> y = jax.jit(rms_norm)(x, 1e-5)
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not paths:
        raise ValueError("jaxc.load needs at least one file")
    if any(os.fspath(p).endswith(_BUILT_SUFFIXES) for p in paths):
        if len(paths) != 1:
            raise ValueError("a built library is loaded alone, not beside other files")
        built = Path(os.path.abspath(paths[0]))
        if not built.exists():
            raise FileNotFoundError(f"no such library: {built}")
        return Library(built, ("load", str(built), Options()))
    sources = read_sources(paths)
    options = Options.make(define, include, libraries, flags, compiler)
    recipe = ("load", tuple(source.path for source in sources), options)
    return _build(Path(sources[0].path).stem, sources, options, recipe)


def compile(
    source: str,
    *,
    name: str = "inline",
    define: Mapping[str, object] | None = None,
    include: Sequence[StrPath] = (),
    libraries: Sequence[StrPath] = (),
    flags: Sequence[str] = (),
    compiler: str | None = None,
) -> Library:
    """Makes JAX functions of C text. See ``load``.

    Args:
      source: the text of a C file.
      name: what messages and profilers call it.

    Example:
      >>> cube = jaxc.compile("float cube(float x) { return x * x * x; }").cube
    """
    options = Options.make(define, include, libraries, flags, compiler)
    sources = [Source(f"{name}.c", source, False)]
    return _build(name, sources, options, ("compile", source, name, options))


def _build(
    name: str, sources: list[Source], options: Options, recipe: tuple[Any, ...]
) -> Library:
    return Library(build(clean_name(name), sources, options), recipe)


def clean_name(name: str) -> str:
    """A library's name as a file and a target may have it."""
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in name)


def restore(kind: str, source: Any, *rest: Any) -> Any:
    """Finds a pickled function again: by library and name, compiling when it must."""
    *head, options, name = rest
    arguments: dict[str, Any] = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(options)
        if field.name not in ("define", "native")
    }
    arguments["define"] = dict(options.define)
    if kind == "bind":
        from jaxc.binding import bind

        del arguments["libraries"]
        return bind(source, *head, **arguments)[name]
    if kind == "load":
        return load(source, **arguments)[name]
    return compile(source, name=head[0], **arguments)[name]
