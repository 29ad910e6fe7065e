"""Measures jaxc against a C++ handler and jax.numpy, and says which goals are met.

    python bench/bench.py [--quick] [--markdown]

Everything is measured in this run, on this machine, side by side. Times are the minimum
over the rounds with the median in parentheses; ratios are those of the minima.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")


def main() -> None:
    """Runs the benchmark and prints its table. A missed goal is no failure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, under 20 s")
    parser.add_argument("--markdown", action="store_true", help="print a markdown table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jaxc-bench-") as folder:
        # A cache of its own: the first load compiles, and nothing stays behind.
        os.environ["JAXC_CACHE_DIR"] = str(Path(folder) / "cache")
        run(Path(folder), options.quick, options.markdown)


def run(folder: Path, quick: bool, markdown: bool) -> None:
    """All measurements in order, then the table."""
    import calls
    import edit
    import instructions
    import memory
    import report
    import rival

    start = time.perf_counter()
    note("compiling the C++ handler, warming up")
    rival.register(folder)
    norms = calls.functions()
    note("calls in programs")
    rows = calls.in_programs(30 if quick else 300, norms)
    note("eager calls")
    rows += calls.eager(30 if quick else 200, norms)
    note("edit to first result")
    rows = edit.measure(3 if quick else 12, folder) + rows
    note("memory of vmap")
    rows += memory.measure()
    note("instructions of a call")
    counts, method = instructions.measure(folder, quick)
    rows += counts
    note("large arrays")
    rows += calls.throughput(5 if quick else 40, norms)
    note(f"took {time.perf_counter() - start:.0f} s", last=True)
    print(report.table(rows, markdown))
    print()
    print(report.machine())
    print(method)
    print(report.LEGEND)


def note(text: str, last: bool = False) -> None:
    """Progress, for somebody who watches."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
