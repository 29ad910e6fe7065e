"""All kernels, sizes, dtypes and numbers of threads, against all that could compute them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kernels import KERNELS
from report import Row, three_digits
from timing import Samples

WORKER = Path(__file__).with_name("worker.py")

#: Elements from which a case is measured with one thread too: below, one is all there is.
THREADED = 1 << 16
#: Elements up to which the second dtype is measured.
SECOND = 1 << 22
#: Seconds a call above which a rival is left out of a case.
LIMIT = 0.3
SLOW = " s a call"  # how worker.py's reason for it ends

NORM_GOALS = ((256, 1024), (16384, 64), (4096, 1024))
#: Kernels that should be much faster than a loop of jax.lax, from this many elements on.
LOOPS = ("tridiagonal", "rectify", "edit_distance", "escape")
LOOPS_FROM = 1 << 12
#: Rows from which threads have something to divide.
ROWS = 64


@dataclasses.dataclass(frozen=True)
class Result:
    """A case, measured: column of the table -> samples, or why there are none."""

    kernel: str
    shape: tuple[int, ...]
    dtype: str
    threads: str
    samples: dict[str, Samples]
    missing: dict[str, str]

    @property
    def elements(self) -> int:
        return KERNELS[self.kernel].elements(self.shape)

    @property
    def name(self) -> str:
        """As the rows call it."""
        size = "x".join(map(str, self.shape))
        return f"{KERNELS[self.kernel].title}, {size} {self.dtype}"

    def best(self, of: Callable[[str], bool]) -> str | None:
        """The fastest column of those for which ``of`` is true."""
        columns = [column for column in self.samples if of(column)]
        return min(columns, key=lambda c: self.samples[c].minimum, default=None)


def is_ours(column: str) -> bool:
    return column.startswith("jaxc")


def is_jax(column: str) -> bool:
    return column.startswith(("jax.numpy", "lax."))


def plan(quick: bool, cores: int) -> Iterator[tuple[str, tuple[int, ...], str, str]]:
    """Kernel, shape, dtype and threads of each case."""
    for name, kernel in KERNELS.items():
        sizes = kernel.sizes[1:4:2] if quick else kernel.sizes
        if quick and name.startswith("rms_norm"):
            sizes = NORM_GOALS
        for dtype in kernel.dtypes[:1] if quick else kernel.dtypes:
            for shape in sizes:
                elements = kernel.elements(shape)
                if dtype != kernel.dtypes[0] and elements > SECOND:
                    continue
                if quick and elements > SECOND:
                    continue
                yield name, shape, dtype, "all"
                if elements >= THREADED and cores > 1:
                    if quick and kernel.bound != "compute":
                        continue
                    yield name, shape, dtype, "1"


class Workers:
    """A process for each number of threads. They take turns, so each has the machine."""

    def __init__(self, folder: Path) -> None:
        environment = {
            **os.environ,
            "WARP_CACHE_PATH": str(folder / "warp"),
            # Else OpenMP's threads, which numba may use, spin while others are measured.
            "OMP_WAIT_POLICY": "passive",
        }
        self.errors = (folder / "workers.txt").open("w+")
        self.processes = {
            threads: subprocess.Popen(
                [sys.executable, str(WORKER), word],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                text=True,
                env=environment,
            )
            for threads, word in (("1", "one"), ("all", "all"))
        }

    def ask(self, threads: str, case: dict[str, Any]) -> dict[str, Any]:
        """What a worker measures.

        Raises:
          RuntimeError: with what it wrote, when it has ended.
        """
        process = self.processes[threads]
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(case), file=process.stdin, flush=True)
        line = process.stdout.readline()
        if not line:
            process.wait()
            self.errors.seek(0)
            raise RuntimeError(f"worker.py ended: {self.errors.read()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        for process in self.processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
        self.errors.close()


def measure(folder: Path, quick: bool, note: Callable[[str], None]) -> list[Result]:
    """All cases of the plan."""
    cores = len(os.sched_getaffinity(0))
    cases: dict[tuple[str, tuple[int, ...], str], list[str]] = {}
    for name, shape, dtype, threads in plan(quick, cores):
        cases.setdefault((name, shape, dtype), []).append(threads)
    results = []
    workers = Workers(folder)
    try:
        for (name, shape, dtype), threads in cases.items():
            note(f"{name} {'x'.join(map(str, shape))} {dtype}")
            case = {
                "kernel": name,
                "shape": shape,
                "dtype": dtype,
                "budget": 0.05 if quick else 0.2,
                "limit": 0.1 if quick else LIMIT,
            }
            # Twice in turns: what the machine does meanwhile meets both numbers of threads.
            answers = [(t, workers.ask(t, case)) for _ in range(2) for t in threads]
            for t in threads:
                mine = [answer for asked, answer in answers if asked == t]
                results.append(_result(name, shape, dtype, t, mine))
    finally:
        workers.close()
    return results


def _result(
    name: str, shape: tuple[int, ...], dtype: str, threads: str, answers: list[dict[str, Any]]
) -> Result:
    samples = {
        column: Samples(tuple(s for answer in answers for s in answer["seconds"][column]))
        for column in answers[0]["seconds"]
    }
    return Result(name, shape, dtype, threads, samples, answers[0]["missing"])


def goals(results: Sequence[Result]) -> list[Row]:
    """What is wanted of the kernels, with the best of jaxc's and the best of JAX's ways."""
    rows = []
    for name in ("rms_norm", "rms_norm_gradient"):
        for result in results:
            wanted = result.threads == "all" and result.dtype == "float32"
            if wanted and result.kernel == name and result.shape in NORM_GOALS:
                rows.append(_against_jax(result, result.name, 1.5))
    every = [r for r in results if r.threads == "all"]
    for name in LOOPS:
        loops = [r for r in every if r.kernel == name and r.elements >= LOOPS_FROM]
        if loops:
            worst = min(loops, key=_ratio)
            best = max(loops, key=_ratio)
            title = KERNELS[name].title
            rows.append(_against_jax(worst, f"{title}, least: {_case(worst)}", 10))
            rows.append(_against_jax(best, f"{title}, most: {_case(best)}"))
    slowest = min(every, key=_ratio)
    count = sum(_ratio(r) < 0.9 for r in every)
    what = f"slowest of all {len(every)} cases ({count} under 0.9x): {slowest.name}"
    rows.append(_against_jax(slowest, what, 0.9))
    return rows + _threads(results)


def _case(result: Result) -> str:
    return f"{'x'.join(map(str, result.shape))} {result.dtype}"


def _ratio(result: Result) -> float:
    ours, theirs = result.best(is_ours), result.best(is_jax)
    if ours is None or theirs is None:
        return float("inf")  # over the limit of a call
    return result.samples[theirs].minimum / result.samples[ours].minimum


def _against_jax(result: Result, what: str, goal: float | None = None) -> Row:
    ours, theirs = result.best(is_ours), result.best(is_jax)
    assert ours is not None
    if theirs is None:
        return Row(what, str(result.samples[ours]), "JAX", f"over {LIMIT:g} s")
    ratio = _ratio(result)
    return Row(
        f"{what}{ours.removeprefix('jaxc')}",
        str(result.samples[ours]),
        theirs,
        str(result.samples[theirs]),
        f"{three_digits(ratio)}x",
        "" if goal is None else f">= {goal:g}x",
        None if goal is None else ratio >= goal,
    )


def _threads(results: Sequence[Result]) -> list[Row]:
    """All threads beside one, for each kernel that computes, at its largest size of rows."""
    rows = []
    both = {(r.kernel, r.shape, r.dtype, r.threads): r for r in results}
    for name, kernel in KERNELS.items():
        shapes = [
            shape
            for shape in kernel.sizes
            if shape[0] >= ROWS and (name, shape, kernel.dtypes[0], "1") in both
        ]
        if kernel.bound != "compute" or not shapes:
            continue
        alone = both[name, shapes[-1], kernel.dtypes[0], "1"]
        many = both[name, shapes[-1], kernel.dtypes[0], "all"]
        one, all_ = alone.samples["jaxc"], many.samples["jaxc"]
        ratio = one.minimum / all_.minimum
        rows.append(
            Row(
                f"all threads: {many.name}",
                str(all_),
                "jaxc, one core",
                str(one),
                f"{three_digits(ratio)}x",
                ">= 1.7x",
                ratio >= 1.7,
            )
        )
    return rows


def tables(results: Sequence[Result]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """For each kernel its title and lines, the first of them the head."""
    made = []
    for name, kernel in KERNELS.items():
        mine = [r for r in results if r.kernel == name]
        if not mine:
            continue
        columns: list[str] = []
        for result in mine:
            for column in (*result.samples, *result.missing):
                if column not in columns:
                    columns.append(column)
        columns.sort(key=_rank)
        lines = [("size", "dtype", "threads", *columns)]
        for result in sorted(mine, key=lambda r: (r.dtype, r.elements, r.shape, r.threads)):
            size = "x".join(map(str, result.shape))
            cells = (_cell(result, column) for column in columns)
            lines.append((size, result.dtype, result.threads, *cells))
        made.append((f"{kernel.title}: {kernel.about}", lines))
    return made


def _rank(column: str) -> int:
    return 0 if is_ours(column) else 1 if is_jax(column) else 2


def _cell(result: Result, column: str) -> str:
    samples = result.samples.get(column)
    if samples is None:
        reason = result.missing.get(column, "")
        return (
            reason.removesuffix(" a call") if reason.endswith(SLOW) else "-" if reason else ""
        )
    if column == "jaxc":
        return str(samples)
    ratio = samples.minimum / result.samples["jaxc"].minimum
    return f"{samples}, {three_digits(ratio)}x"


def reasons(results: Sequence[Result]) -> list[str]:
    """A line for each rival that could not run, with why."""
    seen: dict[str, str] = {}
    for result in results:
        for column, reason in result.missing.items():
            if not reason.endswith(SLOW):
                seen.setdefault(f"{column}: not measured: {reason}", "")
    return list(seen)
