"""What jaxc costs before a program runs: its import, and tracing and lowering."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from calls import CHAIN, EPS, Norm
from report import Row, compare
from timing import Samples, interleave


def imports(rounds: int) -> list[Row]:
    """Rows for ``import jaxc`` beside ``import jax`` alone, each in a new process."""

    def run(module: str) -> Callable[[], float]:
        code = f"import time; t = time.perf_counter(); import {module}; "
        command = [sys.executable, "-c", f"{code}print(time.perf_counter() - t)"]
        return lambda: float(subprocess.run(command, capture_output=True, check=True).stdout)

    measured = interleave({"jaxc": run("jaxc"), "jax": run("jax")}, rounds)
    return [
        compare(
            "import jaxc, which imports jax", measured["jaxc"], "import jax", measured["jax"]
        )
    ]


def lowering(rounds: int, norms: dict[str, Norm]) -> list[Row]:
    """Rows for 200 call sites: seconds to trace and lower them, and characters of the text."""
    x = jnp.arange(1.0, 17.0)
    names = ("jaxc", "C++ Attr", "jnp")
    sizes: dict[str, int] = {}

    def lower(name: str) -> Callable[[], float]:
        norm = norms[name]

        def once() -> float:
            def chain(x: jax.Array) -> jax.Array:  # a new function: nothing is in a cache
                for _ in range(CHAIN):
                    x = norm(x, EPS)
                return x

            start = time.perf_counter()
            lowered = jax.jit(chain).lower(x)
            seconds = time.perf_counter() - start
            sizes[name] = len(lowered.as_text())
            return seconds

        return once

    measured: dict[str, Samples] = interleave({name: lower(name) for name in names}, rounds)
    what = f"trace and lower {CHAIN} call sites"
    rows = []
    for name, title in (("C++ Attr", "ffi_call of C++"), ("jnp", "jax.numpy")):
        rows.append(compare(what, measured["jaxc"], title, measured[name]))
        rows.append(
            Row(
                f"  characters of the lowered text, for each of {CHAIN}",
                f"{sizes['jaxc'] / CHAIN:.0f}",
                title,
                f"{sizes[name] / CHAIN:.0f}",
                f"{sizes[name] / sizes['jaxc']:.2f}x",
            )
        )
    return rows
