"""C files to a kernel library: preprocess, describe, generate, compile, link, cache."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jaxc import cache, compiler, macros
from jaxc.compiler import Compiler
from jaxc.version import __version__

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}


@dataclasses.dataclass(frozen=True)
class Options:
    """How to compile; every field is part of the cache key."""

    define: tuple[tuple[str, str | None], ...] = ()
    include: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    compiler: str | None = None
    native: bool = True

    @classmethod
    def make(
        cls,
        define: Mapping[str, object] | None = None,
        include: Sequence[str | os.PathLike[str]] = (),
        libraries: Sequence[str | os.PathLike[str]] = (),
        flags: Sequence[str] = (),
        compiler: str | None = None,
        native: bool = True,
    ) -> Options:
        """Options from the arguments of ``jaxc.load``.

        Raises:
          TypeError: for a single string where a list is meant.
        """
        for name, value in (("include", include), ("libraries", libraries), ("flags", flags)):
            if isinstance(value, (str, os.PathLike)):
                raise TypeError(f"{name} must be a list, got {value!r}; write [{value!r}]")
        return cls(
            define=tuple(
                (name, None if value is None or value is True else str(value))
                for name, value in (define or {}).items()
            ),
            include=tuple(os.path.abspath(folder) for folder in include),
            libraries=tuple(os.fspath(library) for library in libraries),
            flags=tuple(flags),
            compiler=compiler,
            native=native,
        )

    def compile_flags(self) -> list[str]:
        out = [*compiler.OPTIMIZATION, *(compiler.NATIVE if self.native else ())]
        out += ["-Werror=implicit-function-declaration"]
        out += [f"-D{name}" if v is None else f"-D{name}={v}" for name, v in self.define]
        out += [f"-I{folder}" for folder in self.include]
        out += [f"-I{compiler.include_dir()}", *self.flags]
        return out

    def link_flags(self) -> list[str]:
        out: list[str] = []
        for library in self.libraries:
            if os.path.dirname(library) or ".so" in os.path.basename(library):
                path = os.path.abspath(library)
                out += [path, f"-Wl,-rpath,{os.path.dirname(path)}"]
            else:
                out.append(f"-l{library}")
        return out


@dataclasses.dataclass(frozen=True)
class Source:
    """A C file, or text that stands for one. ``path`` is what messages show."""

    path: str
    text: str
    is_file: bool


@dataclasses.dataclass(frozen=True)
class Binding:
    """Where functions are that have no source.

    Attributes:
      libraries: in order; what the loader shall open, a path or a SONAME, or ``-l`` and a
        name.
      identity: what the built library depends on beside its source.
      portable: the part of it that is in the names of targets.
      kind: "bound" to libraries, or called at an "address" that the process gives.
    """

    libraries: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    portable: tuple[str, ...] = ()
    kind: str = "bound"


def read_sources(paths: Sequence[str | os.PathLike[str]]) -> list[Source]:
    """Reads C files.

    Raises:
      OSError: for a file that cannot be read.
    """
    out = []
    for path in paths:
        absolute = os.path.abspath(path)
        with open(absolute, encoding="utf-8", errors="surrogateescape") as file:
            out.append(Source(absolute, file.read(), True))
    return out


def build(
    name: str, sources: Sequence[Source], options: Options, binding: Binding | None = None
) -> Path:
    """The library of some C files, from the cache when it has been built before.

    Args:
      name: of the library; becomes part of its targets' names.
      binding: the sources are declarations of functions that are elsewhere.

    Returns:
      Its path; beside it lies the C that was generated for it.

    Raises:
      ValueError: for a pragma that cannot be accepted, with file and line.
      RuntimeError: when there is no compiler or it fails, with its message.
    """
    found = compiler.find_compiler(options.compiler)
    units = [_preprocess(found, source, options) for source in sources]
    key = _key(name, sources, units, options, found, binding)
    file = name + _SUFFIX.get(sys.platform, ".so")

    def compile_(folder: Path) -> None:
        _compile(found, name, file, sources, units, options, binding, folder)

    return cache.lookup_or_build(key, file, compile_)


def _preprocess(found: Compiler, source: Source, options: Options) -> str:
    what = f"preprocessing {os.path.basename(source.path)}"
    arguments = [*options.compile_flags(), "-E"]
    has_grid = macros.has_grid(source.text)
    if has_grid:
        arguments.append("-dD")
    if source.is_file:
        out = found.run([*arguments, "-x", "c", source.path], what=what)
    else:
        text = f'#line 1 "{source.path}"\n{source.text}'
        out = found.run([*arguments, "-x", "c", "-"], what=what, text=text)
    return macros.expand(out) if has_grid else out


def _hash(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogateescape")
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()


@functools.cache
def _own_digest() -> str:
    """Hash of jaxc's headers and of its code that writes C: part of every library."""
    package = Path(__file__).parent
    files = [*(compiler.include_dir() / "jaxc").glob("*.h")]
    files += [package / name for name in ("build.py", "macros.py")]
    files += [f for room in ("declare", "generate") for f in (package / room).glob("*.py")]
    return _hash(__version__, *(file.read_text(encoding="utf-8") for file in sorted(files)))


def _key(
    name: str,
    sources: Sequence[Source],
    units: Sequence[str],
    options: Options,
    found: Compiler,
    binding: Binding | None,
) -> str:
    """Hash of all that the library's bytes depend on."""
    native = compiler.cpu_features() if options.native else ""
    pairs = [part for source, unit in zip(sources, units, strict=True)
             for part in (source.path, source.text, unit)]  # fmt: skip
    parts = [name, repr(options), " ".join(found.command), found.version, native]
    parts += [] if binding is None else [repr(binding)]
    return _hash(_own_digest(), *parts, *pairs)[:40]


def _source_hash(user_texts: Sequence[str], options: Options, binding: Binding | None) -> str:
    """Hash for names of targets: equal on every machine that loads the same source."""
    portable = repr((options.define, options.libraries, options.flags, options.compiler))
    portable += "" if binding is None else repr(binding.portable)
    return _hash(__version__, portable, *user_texts)[:16]


def _compile(
    found: Compiler,
    name: str,
    file: str,
    sources: Sequence[Source],
    units: Sequence[str],
    options: Options,
    binding: Binding | None,
    folder: Path,
) -> None:
    """Fills ``folder`` with the library and the C that was generated for it."""
    # Imported here so that a library found in the cache needs no parser.
    from jaxc import generate
    from jaxc.declare import Unit, declare, require_declarations

    read = [Unit(s.path, unit, s.text) for s, unit in zip(sources, units, strict=True)]
    title = name
    if binding is not None:
        title = f"{binding.kind}/{name}"
        require_declarations(read)
    declared = declare(read)
    if binding is not None and binding.kind == "address":
        declared = [[d.at_address() for d in unit] for unit in declared]
    is_bound = binding is not None and binding.kind == "bound"
    hash_ = _source_hash([unit.text.user_text for unit in read], options, binding)
    everything = [description for unit in declared for description in unit]
    _write(folder / "table.c", generate.table(title, hash_, __version__, everything))
    flags = [*options.compile_flags(), "-fPIC", "-fvisibility=hidden"]
    flags += ["-ffunction-sections", "-fdata-sections"]
    jobs: list[tuple[str, list[str]]] = []
    objects: list[str] = []
    for number, (source, unit) in enumerate(zip(sources, units, strict=True)):
        base = os.path.basename(source.path)
        loops = generate.loops(declared[number], is_bound=is_bound)
        _write(folder / f"loops{number}.c", loops)
        _write(
            folder / f"unit{number}.i", f'{unit}\n# 1 "{base} (row loops of jaxc)"\n{loops}\n'
        )
        output = str(folder / f"unit{number}.o")
        objects.append(output)
        # The ending .i says that it is preprocessed; zig has no -x for that.
        arguments = [*flags, "-c", str(folder / f"unit{number}.i")]
        jobs.append((f"compiling {base}", [*arguments, "-o", output]))
    output = str(folder / "table.o")
    objects.append(output)
    table_flags = [*flags, "-O1", "-c", str(folder / "table.c"), "-o", output]
    jobs.append(("compiling the table", table_flags))
    if is_bound:
        output = str(folder / "bound.o")
        objects.append(output)
        _write(folder / "bound.c", generate.bound(everything))
        bound_flags = ["-fPIC", "-fvisibility=hidden", *options.flags, "-O1", "-c"]
        arguments = [*bound_flags, str(folder / "bound.c"), "-o", output]
        jobs.append(("compiling the table of bound functions", arguments))
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2)) as pool:
        running = [pool.submit(found.run, arguments, what=what) for what, arguments in jobs]
        objects.append(str(_driver(found, options)))
        for job in running:
            job.result()
    arguments = ["-shared", "-o", str(folder / file), *objects, *options.flags]
    if binding is not None and is_bound:
        arguments += _bound_link_flags(found, binding, folder)
    arguments += [*options.link_flags(), *_system_link_flags(found)]
    _, warnings = found.run_with_messages(arguments, what=f"linking {name}")
    if unresolved := sorted(set(_UNRESOLVED.findall(warnings))):
        # No error: the process that loads it may have them, as Python has its own API.
        _write(folder / "unresolved", "\n".join(unresolved))
    for leftover in [*folder.glob("*.[oi]"), *folder.glob("standin*")]:
        leftover.unlink()


def _bound_link_flags(found: Compiler, binding: Binding, folder: Path) -> list[str]:
    """Makes the library need others, though it has no undefined symbol of theirs."""
    out = [] if sys.platform == "darwin" else ["-Wl,--no-as-needed"]
    for number, path in enumerate(binding.libraries):
        if path.startswith("-l"):
            out.append(path)
            continue
        # A library's own name for itself (its SONAME) would be what the loader looks for, and
        # it would take another file of that name. So the linker sees a stand-in, which has
        # the path for its name.
        standin = folder / f"standin{number}{_SUFFIX.get(sys.platform, '.so')}"
        empty = folder / f"standin{number}.c"
        _write(empty, "")
        option = "-install_name" if sys.platform == "darwin" else "-soname"
        arguments = ["-shared", "-Xlinker", option, "-Xlinker", path, str(empty)]
        found.run([*arguments, "-o", str(standin)], what=f"a stand-in for {path}")
        out.append(str(standin))
    return out


#: A symbol that no file defines, in the words of GNU ld and of lld.
_UNRESOLVED = re.compile(r"undefined (?:reference to|symbol:?) [`'\"]?([A-Za-z_]\w*)")


def _system_link_flags(found: Compiler) -> list[str]:
    if sys.platform == "darwin":
        return ["-Wl,-dead_strip", "-undefined", "dynamic_lookup"]
    # What no handler reaches goes, with its undefined symbols: a file whose other
    # functions need more than this machine has still loads.
    checks = ["-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"]
    if "ziglang" in found.command:  # its linker has no such warning
        checks = []
    return ["-Wl,--gc-sections", "-Wl,-Bsymbolic", *checks, "-pthread", "-lm"]


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


_driver_lock = threading.Lock()


def _driver(found: Compiler, options: Options) -> Path:
    """The object that is the same in all libraries, compiled once for each compiler."""
    from jaxc.generate import DRIVER

    words = [found.version, " ".join(found.command), repr(options.flags)]
    key = _hash(_own_digest(), *words)[:40]

    def compile_driver(folder: Path) -> None:
        _write(folder / "driver.c", DRIVER)
        arguments = ["-O3", "-fPIC", "-fvisibility=hidden", f"-I{compiler.include_dir()}"]
        arguments += [*options.flags, "-c", str(folder / "driver.c")]
        found.run([*arguments, "-o", str(folder / "driver.o")], what="compiling the driver")

    with _driver_lock:
        return cache.lookup_or_build("driver-" + key, "driver.o", compile_driver)
