"""Measures jaxc against everything else a JAX user could take, and says which goals are met.

    python bench/bench.py [--quick] [--markdown] [--write]

Everything is measured in this run, on this machine, side by side. Times are the minimum
over the rounds with the median in parentheses; ratios are those of the minima. What is
measured and how is in docs/benchmarks.md, whose tables and plot --write makes anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matrix import Result
    from report import Row

os.environ.setdefault("JAX_PLATFORMS", "cpu")

DOCS = Path(__file__).parent.parent / "docs"


def main() -> None:
    """Runs the benchmark and prints its tables. A missed goal is no failure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of all, under 90 s")
    parser.add_argument("--markdown", action="store_true", help="print markdown tables")
    parser.add_argument(
        "--write", action="store_true", help="write docs/benchmarks.md and its plot too"
    )
    options = parser.parse_args()
    if options.write and options.quick:
        parser.error("--write is for a whole run, not for --quick")
    with tempfile.TemporaryDirectory(prefix="jaxc-bench-") as folder:
        # Caches of its own: the first load compiles, and nothing stays behind.
        os.environ["JAXC_CACHE_DIR"] = str(Path(folder) / "cache")
        os.environ["WARP_CACHE_PATH"] = str(Path(folder) / "warp")
        run(Path(folder), options)


def run(folder: Path, options: argparse.Namespace) -> None:
    """All measurements in order, then the tables."""
    import adopted
    import callbacks
    import calls
    import edit
    import instructions
    import launch
    import matrix
    import memory
    import report
    import rival
    import startup

    quick = options.quick
    start = time.perf_counter()
    note("compiling the C++ handler, warming up")
    rival.register(folder)
    norms = calls.functions()
    note("calls in programs")
    rows = calls.in_programs(30 if quick else 300, norms)
    note("eager calls")
    rows += calls.eager(30 if quick else 200, norms)
    note("callbacks in programs")
    rows += callbacks.in_programs(5 if quick else 30, norms)
    note("ufuncs and Python functions")
    rows += adopted.measure(5 if quick else 30)
    note("tracing and lowering")
    rows += startup.lowering(3 if quick else 10, norms)
    note("imports")
    rows += startup.imports(3 if quick else 7)
    note("edit to first result")
    rows = edit.measure(3 if quick else 12, folder) + rows
    note("memory of vmap")
    rows += memory.measure()
    note("instructions of a call")
    counts, method = instructions.measure(folder, quick)
    rows += counts
    note("launch-style kernels")
    launched, why_not = launch.try_measure(quick)
    results = matrix.measure(folder, quick, note)
    rows += matrix.goals(results)
    note(f"took {time.perf_counter() - start:.0f} s", last=True)
    notes = [report.machine(), method, *why_not, *matrix.reasons(results), report.LEGEND]
    print(text(rows, results, launched, notes, options.markdown))
    if options.write:
        write(text(rows, results, launched, notes, markdown=True), results)


def text(
    rows: list[Row],
    results: list[Result],
    launched: list[tuple[str, ...]],
    notes: list[str],
    markdown: bool,
) -> str:
    """The whole report: goals, kernels, and where it was measured."""
    import launch
    import matrix
    import report

    parts = [report.table(rows, markdown), report.verdict(rows)]
    tables = matrix.tables(results)
    if launched:
        tables = [*tables, (launch.TITLE, launched)]
    for title, lines in tables:
        parts.append(f"### {title}" if markdown else title)
        parts.append(report.aligned(lines, markdown))
    return "\n\n".join([*parts, *notes])


def write(content: str, results: list[Result]) -> None:
    """Puts the report into docs/benchmarks.md and its plot beside it."""
    import report

    document = DOCS / "benchmarks.md"
    document.write_text(report.replace_region(document.read_text(), content))
    try:
        import plot
    except ImportError as error:
        print(f"no plot: {error}")
        return
    plot.draw(results, DOCS / "benchmarks.svg")


def note(text: str, last: bool = False) -> None:
    """Progress, for somebody who watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
