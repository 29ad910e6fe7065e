"""The table of results, and the line that says where they were measured."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Sequence

import jax

import rival
from jaxc import compiler
from timing import Samples, three_digits

LEGEND = (
    "Times: minimum over interleaved rounds (median). Ratio: the other's minimum, or its "
    "instructions of one call, over jaxc's; above 1, jaxc needs less."
)

#: Marks in docs/benchmarks.md, between which bench.py writes.
BEGIN, END = "<!-- bench.py writes from here -->", "<!-- to here -->"

_HEAD = ("what", "jaxc", "against", "its figure", "ratio", "goal", "result")


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table; texts may be empty.

    ``ratio`` is the other's figure over jaxc's: above 1, jaxc is better.
    """

    what: str
    ours: str
    against: str = ""
    theirs: str = ""
    ratio: str = ""
    goal: str = ""
    met: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """The texts of its columns."""
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return (
            self.what,
            self.ours,
            self.against,
            self.theirs,
            self.ratio,
            self.goal,
            verdict,
        )


def compare(
    what: str, ours: Samples, against: str, theirs: Samples, goal: float | None = None
) -> Row:
    """A row from two measurements; the ratio is that of the minima.

    Args:
      goal: least ratio that is wanted.
    """
    ratio = theirs.minimum / ours.minimum
    return _ratio_row(what, str(ours), against, str(theirs), ratio, goal)


def counted(
    what: str, ours: float, against: str, theirs: float, goal: float | None = None
) -> Row:
    """A row from two numbers of instructions. See ``compare``."""
    ratio = theirs / ours
    return _ratio_row(what, f"{ours:.0f}", against, f"{theirs:.0f}", ratio, goal)


def _ratio_row(
    what: str, ours: str, against: str, theirs: str, ratio: float, goal: float | None
) -> Row:
    return Row(
        what,
        ours,
        against,
        theirs,
        f"{three_digits(ratio)}x",
        "" if goal is None else f">= {goal:g}x",
        None if goal is None else ratio >= goal,
    )


def table(rows: Sequence[Row], markdown: bool) -> str:
    """All rows as aligned text or as a markdown table."""
    return aligned([_HEAD, *(row.cells() for row in rows)], markdown)


def aligned(cells: Sequence[tuple[str, ...]], markdown: bool) -> str:
    """Lines of cells, the first of them the head."""
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    lines = [
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in cells
    ]
    rule = ["-" * width for width in widths]
    if markdown:
        rule = ["-" * max(3, width) for width in widths]
        return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])
    return "\n".join("  ".join(line).rstrip() for line in [lines[0], rule, *lines[1:]])


def verdict(rows: Sequence[Row]) -> str:
    """How many goals are met, and which are not."""
    judged = [row for row in rows if row.met is not None]
    missed = [row for row in judged if not row.met]
    names = "".join(
        f"\n- {row.what}; against {row.against or 'itself'}: {row.ratio or row.ours}, "
        f"goal {row.goal}"
        for row in missed
    )
    return f"{len(judged) - len(missed)} of {len(judged)} goals met. MISSED:{names or ' none'}"


def replace_region(text: str, content: str) -> str:
    """A document with what stands between its two marks replaced.

    Raises:
      ValueError: when it has no such marks.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the document has no {BEGIN} with an {END} after it")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def machine() -> str:
    """CPU and how busy it was, versions, flags and date."""
    found = compiler.find_compiler()
    flags = " ".join((*compiler.OPTIMIZATION, *compiler.NATIVE))
    return (
        f"{_cpu()}, {os.cpu_count()} cores{_load()}; Python {platform.python_version()}, "
        f"JAX {jax.__version__}, jaxlib {importlib.metadata.version('jaxlib')}; "
        f"C: {_first_line(found.version)}, {flags}; "
        f"C++: {_version(rival.COMPILER)}, {' '.join(rival.FLAGS)}; "
        f"{datetime.date.today().isoformat()}"
    )


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or f"{platform.machine()} ({sys.platform})"


def _load() -> str:
    """The load average, which includes this benchmark; other work makes it higher."""
    try:
        return f", load {os.getloadavg()[1]:.1f}"
    except (AttributeError, OSError):
        return ""


def _version(command: str) -> str:
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    return _first_line(done.stdout)


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip()
