"""Find a C compiler and run it."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: -fno-math-errno and -fno-trapping-math let loops vectorise and change no value; nothing
#: of -ffast-math is here, which would turn on flush-to-zero for the whole process.
OPTIMIZATION = ("-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math")


def _native_flags() -> tuple[str, ...]:
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64", "i686"):
        return ("-march=native",)
    if machine in ("aarch64", "arm64"):
        return ("-mcpu=native",)
    return ()


NATIVE = _native_flags()


@dataclasses.dataclass(frozen=True)
class Compiler:
    """A working C compiler.

    Attributes:
      command: the words that start it, ``("gcc",)`` or ``(python, "-m", "ziglang", "cc")``.
      version: what it answers to ``--version``.
    """

    command: tuple[str, ...]
    version: str

    def run(self, arguments: Sequence[str], *, what: str, text: str | None = None) -> str:
        """Runs the compiler and returns its standard output. See ``run_with_messages``."""
        return self.run_with_messages(arguments, what=what, text=text)[0]

    def run_with_messages(
        self, arguments: Sequence[str], *, what: str, text: str | None = None
    ) -> tuple[str, str]:
        """Runs the compiler and returns its standard output and its warnings.

        Args:
          what: what is being done, for the error: "compiling rms_norm.c".
          text: standard input.

        Raises:
          RuntimeError: with the compiler's own message, when it fails or is killed.
        """
        command = [*self.command, *arguments]
        try:
            done = subprocess.run(
                command,
                input=None if text is None else text.encode("utf-8", "surrogateescape"),
                stdin=subprocess.DEVNULL if text is None else None,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise RuntimeError(f"{what}: cannot run {shlex.join(command)}: {error}") from error
        if done.returncode == 0:
            output = done.stdout.decode("utf-8", "surrogateescape")
            return output, done.stderr.decode("utf-8", "replace")
        message = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode < 0:
            name = signal.Signals(-done.returncode).name
            reason = f"the compiler was killed by {name}"
        else:
            reason = f"the compiler failed with status {done.returncode}"
        detail = f":\n{message}" if message else ""
        raise RuntimeError(f"{what}: {reason} ({shlex.join(self.command)}){detail}")


@functools.lru_cache(maxsize=32)
def _probe(command: tuple[str, ...], path: str, stamp: int) -> Compiler:
    """``path`` and ``stamp`` make a replaced compiler a new one."""
    del path, stamp
    version = Compiler(command, "").run(["--version"], what="asking for the version")
    return Compiler(command, version)


def _stamped(command: tuple[str, ...]) -> Compiler | None:
    path = shutil.which(command[0])
    if path is None:
        return None
    return _probe(command, path, os.stat(path).st_mtime_ns)


def find_compiler(requested: str | None = None) -> Compiler:
    """The compiler asked for, else $CC, gcc, clang, cc, or zig from the ziglang package.

    Args:
      requested: a command line, "clang-18" or "ccache gcc"; "zig" means the ziglang wheel.

    Raises:
      RuntimeError: when there is none, saying what was tried and how to get one.
    """
    for source, value in (("compiler=", requested), ("$CC=", os.environ.get("CC"))):
        if not value:
            continue
        if value == "zig":
            if (zig := _zig()) is not None:
                return zig
        elif (found := _stamped(tuple(shlex.split(value)))) is not None:
            return found
        raise RuntimeError(f"the C compiler {source}{value!r} is not there")
    for name in ("gcc", "clang", "cc"):
        if (found := _stamped((name,))) is not None:
            return found
    if (zig := _zig()) is not None:
        return zig
    raise RuntimeError(
        "no C compiler: looked for $CC, gcc, clang, cc and the ziglang package. "
        "'pip install jaxc[zig]' brings one without root; on Debian 'apt install gcc'"
    )


def _zig() -> Compiler | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    return _stamped((sys.executable, "-m", "ziglang", "cc"))


def include_dir() -> Path:
    """The folder that holds <jaxc/jaxc.h>, for ``cc -I``."""
    return Path(__file__).parent / "include"


@functools.cache
def cpu_features() -> str:
    """What ``-march=native`` depends on; home folders are shared between machines."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            first = file.read().partition("\n\n")[0]
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("flags", "features", "model", "cpu family", "cpu part", "cpu implementer")
    rows = [line for line in first.splitlines() if line.split("\t")[0].lower() in wanted]
    return "\n".join([platform.machine(), *rows])
