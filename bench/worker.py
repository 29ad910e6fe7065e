"""Measures cases of ``kernels.KERNELS`` in a process of its own; bench.py talks to it.

    worker.py one|all       threads; then a case a line on standard input, JSON both ways

One thread is one core for the process: sched_setaffinity before JAX starts, which XLA's
pools, numba and BLAS all go by. XLA_FLAGS=--xla_cpu_multi_thread_eigen=false does not do it:
neither XLA's own programs nor handlers use fewer threads with it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

if __name__ == "__main__" and sys.argv[1] == "one":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import numpy as np

from kernels import KERNELS, Call, Kernel
from rivals import with_jnp
from timing import Candidate, interleave, timed

jax.config.update("jax_enable_x64", True)

#: Columns of the tables and the modules that fill them.
RIVALS = {
    "C++ handler": "with_cpp",
    "Warp": "with_warp",
    "numba": "with_numba",
    "NumPy": "with_numpy",
    "SciPy": "with_scipy",
}
SHORTEST = 1e-3  # seconds for which a candidate runs in a round
#: Seconds of a call under which a candidate runs once untimed first, in every round: its data
#: may fit in the caches, where the candidate before has left its own.
SETTLED = 0.02
TOLERANCES = {"float32": 2e-4, "float64": 1e-9, "uint8": 0.0}


class Bench:
    """The worker's memory: what is compiled, and how fast things were."""

    def __init__(self) -> None:
        self.made: dict[tuple[str, str], dict[str, Call] | str] = {}
        #: (kernel, dtype, column) -> seconds for an element, at the size before
        self.pace: dict[tuple[str, str, str], float] = {}
        self.prepared: tuple[Any, dict[str, Candidate], dict[str, str], float] | None = None

    def answer(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Samples for a case in ``case["budget"]`` seconds or so.

        Returns:
          ``seconds``: column -> samples, ``missing``: column -> why there is none.
        """
        key = case["kernel"], tuple(case["shape"]), case["dtype"]
        if self.prepared is None or self.prepared[0] != key:
            self.prepared = None  # frees the arrays of the last case
            self.prepared = (key, *self.prepare(*key, case["limit"]))
        _, candidates, missing, round_time = self.prepared
        rounds = max(2, min(20, int(case["budget"] / round_time)))
        seconds = interleave(candidates, rounds)
        return {
            "seconds": {name: samples.seconds for name, samples in seconds.items()},
            "missing": missing,
        }

    def prepare(
        self, name: str, shape: tuple[int, ...], dtype: str, limit: float
    ) -> tuple[dict[str, Candidate], dict[str, str], float]:
        """Compiles all candidates of a case and compares their results."""
        kernel = KERNELS[name]
        arrays = kernel.inputs(np.random.default_rng(0), shape, np.dtype(dtype))
        operands = tuple(map(jax.numpy.asarray, arrays))
        calls, missing = self.calls(name, kernel, dtype, operands)
        candidates: dict[str, Candidate] = {}
        expected: Any = None
        total = 0.0
        for column, call in calls.items():
            pace = self.pace.get((name, dtype, column), 0.0)
            is_rival = not column.startswith("jaxc")
            if is_rival and pace * kernel.elements(shape) > 2 * limit:
                missing[column] = f"over {limit:g} s a call"
                continue
            program = jax.jit(call)
            try:
                got = jax.block_until_ready(program(*operands))
            except Exception as error:
                if not is_rival:
                    raise
                missing[column] = _first_line(error)
                continue
            expected = got if expected is None else expected
            agree(kernel, column, dtype, expected, got)
            work = _waits(program, operands)
            once = timed(work)()
            self.pace[name, dtype, column] = once / kernel.elements(shape)
            if is_rival and once > limit:
                missing[column] = f"over {limit:g} s a call"
                continue
            repeat = max(1, round(SHORTEST / once))
            warm = once < SETTLED
            candidates[column] = timed(work, repeat, warm)
            total += (repeat + warm) * once
        return candidates, missing, total

    def calls(
        self, name: str, kernel: Kernel, dtype: str, operands: tuple[jax.Array, ...]
    ) -> tuple[dict[str, Call], dict[str, str]]:
        """All columns that a kernel has, jaxc's first, and why others have none."""
        calls = dict(kernel.ours(kernel.library(dtype)))
        results = jax.eval_shape(calls["jaxc"], *operands)
        calls.update(with_jnp.MADE[name])
        missing = {}
        for column, module in RIVALS.items():
            if (column, dtype) not in self.made:
                self.made[column, dtype] = _make(module, dtype)
            kernels = self.made[column, dtype]
            if isinstance(kernels, str):
                missing[column] = kernels
            elif name in kernels:
                calls[column] = _with_results(kernels[name], results)
        return calls, missing


def _make(module: str, dtype: str) -> dict[str, Call] | str:
    """A rival's kernels, or why there are none."""
    try:
        made: dict[str, Call] = importlib.import_module(f"rivals.{module}").made(dtype)
        return made
    except Exception as error:  # a rival that cannot run is a line of the table
        return _first_line(error)


def _with_results(call: Call, results: Any) -> Call:
    return lambda *arrays: call(results, *arrays)


def _waits(program: Call, operands: tuple[jax.Array, ...]) -> Call:
    return lambda: jax.block_until_ready(program(*operands))


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"[:200]


def agree(kernel: Kernel, column: str, dtype: str, expected: Any, got: Any) -> None:
    """Refuses to time what does not compute the same.

    Raises:
      AssertionError: naming the kernel and who disagrees with jaxc.
    """
    tolerance = TOLERANCES[dtype]
    pairs = zip(jax.tree.leaves(expected), jax.tree.leaves(got), strict=True)
    for one, other in pairs:
        a, b = np.asarray(one), np.asarray(other)
        where = f"{kernel.title}, {dtype}: {column} and jaxc"
        if a.shape != b.shape or a.dtype != b.dtype:
            raise AssertionError(f"{where}: {b.shape} {b.dtype}, {a.shape} {a.dtype}")
        off = np.abs(a - b) > tolerance * (1 + np.abs(a)) if a.dtype.kind == "f" else a != b
        if np.isnan(b).any() or off.mean() > kernel.mismatches:
            raise AssertionError(f"{where} disagree in {off.mean():.1%} of all values")


def main() -> None:
    """Answers until standard input ends."""
    # What a library prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    bench = Bench()
    for line in sys.stdin:
        print(json.dumps(bench.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
