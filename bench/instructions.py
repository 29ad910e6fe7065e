"""Instructions that one call costs to decode, counted: jaxc's handlers and the C++ header's.

A count does not depend on what else the machine does, so it shows changes that times hide.
Each handler is called N and 2N times, and the difference is divided by N: what the process
does before the first call drops out.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import jax

from jaxc import build, compiler
from report import Row, counted

HERE = Path(__file__).parent
FLAGS = ("-O3", "-fPIC", "-shared")
COUNT = 1000

#: C and C++ compilers that belong together.
COMPILERS = (("gcc", "g++"), ("clang", "clang++"))

#: What decode_main.c calls, and how a row names it.
CALLS = {
    "four": "4 buffers, 2 attributes",
    "one": "2 buffers",
    "error": "4 buffers, one of a wrong dtype",
}


@dataclasses.dataclass(frozen=True)
class Tool:
    """What counts the instructions of a command.

    Attributes:
      words: stand before the command.
      pattern: finds the number in what is written to standard error.
    """

    name: str
    words: tuple[str, ...]
    pattern: str

    def count(self, command: Sequence[str]) -> int:
        """Instructions that the command executes in user mode.

        Raises:
          RuntimeError: when the tool is not there or cannot count, or the command fails.
        """
        whole = [*self.words, *command]
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                whole, capture_output=True, text=True, check=False, env=environment
            )
        except OSError as error:
            raise RuntimeError(f"cannot run {self.words[0]}: {error}") from error
        found = re.search(self.pattern, done.stderr, re.MULTILINE)
        if done.returncode != 0 or found is None:
            raise RuntimeError(f"{' '.join(whole)} counted nothing:\n{done.stderr}")
        return int(found[1])

    def works(self) -> bool:
        """Whether it can count here; perf needs counters that a virtual machine may lack."""
        try:
            return self.count(["true"]) > 0
        except RuntimeError:
            return False


#: The first that works is used: valgrind's numbers have no noise.
TOOLS = (
    Tool(
        "callgrind",
        ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"),
        r"Collected\s*:\s*(\d+)",
    ),
    Tool(
        "perf stat",
        ("perf", "stat", "-x,", "-e", "instructions:u"),
        r"^(\d+),[^,]*,instructions:u",
    ),
)


def measure(folder: Path, quick: bool) -> tuple[list[Row], str]:
    """Rows for each pair of compilers that is there, and a line that says how they came.

    Args:
      folder: for what is compiled.
      quick: the first pair alone.
    """
    tool = next((tool for tool in TOOLS if tool.works()), None)
    if tool is None:
        return [], "Instructions: not counted, neither valgrind nor perf does it here."
    pairs = [pair for pair in COMPILERS if all(map(shutil.which, pair))]
    if not pairs:
        return [], "Instructions: not counted, there is no gcc with g++ nor clang with clang++."
    pairs = pairs[:1] if quick else pairs
    driver = _driver(folder, pairs[0][0])
    rows = []
    for c, cc in pairs:
        rows += _pair(folder, driver, tool, c, cc)
    names = "; ".join(_version(c) for c, _ in pairs)
    return rows, (
        f"Instructions: {tool.name}, 2N calls less N calls over N = {COUNT}; {names}; "
        f"{' '.join(FLAGS)}; described: flags of jaxc.load but {' '.join(compiler.NATIVE)}."
    )


def _pair(folder: Path, driver: Path, tool: Tool, c: str, cc: str) -> list[Row]:
    """Rows for what a C and a C++ compiler make of the same calls."""
    libraries = {"handler": _handler(folder, c), "described": _described(c)}
    rival = _rival(folder, cc)
    rows = []
    for call, name in CALLS.items():
        theirs = _per_call(tool, driver, rival, call)
        for kind, library in libraries.items():
            rows.append(
                counted(
                    f"instructions, {c}, {name}: {kind}",
                    _per_call(tool, driver, library, call),
                    f"{cc}, ffi.h",
                    theirs,
                    1 if kind == "handler" and call == "four" else None,
                )
            )
    return rows


def _per_call(tool: Tool, driver: Path, library: Path, call: str) -> float:
    once, twice = (
        tool.count([str(driver), str(library), call, str(count)])
        for count in (COUNT, 2 * COUNT)
    )
    return (twice - once) / COUNT


def _compile(command: list[str], output: Path) -> Path:
    done = subprocess.run(
        [*command, "-o", str(output)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return output


def _driver(folder: Path, c: str) -> Path:
    """The one driver of all counts, so that its own part of them is the same."""
    command = [c, "-std=c11", "-O3", f"-I{compiler.include_dir()}"]
    return _compile([*command, str(HERE / "decode_main.c"), "-ldl"], folder / "decode_main")


def _handler(folder: Path, c: str) -> Path:
    command = [c, "-std=c11", *FLAGS, f"-I{compiler.include_dir()}", str(HERE / "decode.c")]
    return _compile(command, folder / f"decode_{c}.so")


def _rival(folder: Path, cc: str) -> Path:
    command = [cc, "-std=c++17", *FLAGS, f"-I{jax.ffi.include_dir()}", str(HERE / "decode.cc")]
    return _compile(command, folder / f"decode_{cc}.so")


def _described(c: str) -> Path:
    """The library that jaxc.load makes of plain functions, for any CPU: valgrind does not
    know the newest instructions."""
    options = build.Options.make({"DECODE_DESCRIBED": None}, compiler=c, native=False)
    path: Path = build.build("decode", build.read_sources([HERE / "decode.c"]), options)
    return path


def _version(command: str) -> str:
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.partition("\n")[0].strip()
