"""Launch-style kernels: examples/launch.c beside the same in Warp, by its jax_kernel.

    python bench/launch.py [--quick]

Five kernels of the kinds that Warp's documentation of JAX shows: one output, several outputs,
vectors, launch dims of two axes, and a sum in place by atomics. Both get the same arrays, and
their results are compared before anything is timed. A call alone is one of a chain inside a
jitted program, on few elements; a large call is a program of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import jaxc
from timing import Samples, interleave, three_digits, timed

SOURCE = Path(__file__).parent.parent / "examples" / "launch.c"
#: Calls in the chain of a program; those of Warp enter Python, so fewer show the same.
CHAIN, SHORT = 200, 20

TITLE = "Launch-style kernels, beside Warp"
_HEAD = (
    "kernel", "lines", "Warp", "one call", "Warp", "ratio",
    "large call", "jaxc", "Warp", "per second", "Warp", "ratio",
)  # fmt: skip

Arrays = tuple[jax.Array, ...]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One kernel in both. A call takes the arrays and gives a tuple of results.

    Attributes:
      small, large: arrays of a call alone, and of a large one.
      again: the arrays of the next call of a chain, from those of one and its results.
      reference: the results by NumPy.
      work: elements of a large call, or products of a matrix.
      lines: of the kernel, in C and in Python, with what makes it a JAX function.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    small: Arrays
    large: Arrays
    again: Callable[[Arrays, Any], Arrays]
    reference: Callable[..., Any]
    shown: str
    work: int
    lines: tuple[int, int]


def measure(quick: bool) -> list[tuple[str, ...]]:
    """The lines of the table, the first of them its head.

    Raises:
      ImportError: where Warp is not installed.
      AssertionError: when results differ.
    """
    lines = [_HEAD]
    for kernel in kernels():
        compare_results(kernel)
        alone = interleave(
            {
                "jaxc": timed(waits(chain(kernel.ours, kernel, CHAIN), kernel.small), 20),
                "Warp": timed(waits(chain(kernel.theirs, kernel, SHORT), kernel.small), 5),
            },
            8 if quick else 200,
        )
        large = interleave(
            {
                name: timed(waits(jax.jit(call), kernel.large), warm=True)
                for name, call in (("jaxc", kernel.ours), ("Warp", kernel.theirs))
            },
            3 if quick else 40,
        )
        lines.append(cells(kernel, alone["jaxc"] / CHAIN, alone["Warp"] / SHORT, large))
    return lines


def try_measure(quick: bool) -> tuple[list[tuple[str, ...]], list[str]]:
    """The lines of the table and its notes; no lines, and the reason, where Warp cannot run."""
    try:
        return measure(quick), list(notes())
    except ImportError as error:
        return [], [f"{TITLE}: not measured, {type(error).__name__}: {error}"]


def cells(
    kernel: Kernel, ours: Samples, theirs: Samples, large: dict[str, Samples]
) -> tuple[str, ...]:
    """One line of the table."""
    rates = [rate(kernel.work / large[name].minimum) for name in ("jaxc", "Warp")]
    ratio = large["Warp"].minimum / large["jaxc"].minimum
    return (
        kernel.name,
        *map(str, kernel.lines),
        str(ours),
        str(theirs),
        f"{three_digits(theirs.minimum / ours.minimum)}x",
        kernel.shown,
        str(large["jaxc"]),
        str(large["Warp"]),
        *rates,
        f"{three_digits(ratio)}x",
    )


def rate(value: float) -> str:
    """Three digits and a unit: ``1.25 G``."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{three_digits(value / size)} {unit}"
    return three_digits(value)


def waits(program: Callable[..., Any], arrays: Arrays) -> Callable[[], object]:
    return lambda: jax.block_until_ready(program(*arrays))


def chain(call: Callable[..., Any], kernel: Kernel, count: int) -> Callable[..., Any]:
    """A program with so many calls, each of which waits for the one before."""

    def program(*arrays: jax.Array) -> Any:
        for _ in range(count):
            arrays = kernel.again(arrays, call(*arrays))
        return arrays

    return jax.jit(program)


def compare_results(kernel: Kernel) -> None:
    for arrays in (kernel.small, kernel.large):
        expected = kernel.reference(*map(np.asarray, arrays))
        for call in (kernel.ours, kernel.theirs):
            for ours, theirs in zip(jax.jit(call)(*arrays), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def kernels() -> list[Kernel]:
    """All five."""
    from rivals import launched_by_warp as warp

    c = jaxc.load(SOURCE)
    scale_vec = warp.make_scale_vec()
    random = np.random.default_rng(0)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(random.standard_normal(shape), jnp.float32)

    def cells_of(count: int, most: int) -> jax.Array:
        return jnp.asarray(random.integers(0, most, count), jnp.int32)

    def one(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arrays: (function(*arrays),)

    def first(arrays: Arrays, results: Any) -> Arrays:
        return (results[0], *arrays[1:])

    def deposit(cell: Any, mass: Any, density: Any) -> Any:
        out = density.astype("float64")
        np.add.at(out, cell, mass)
        return (out,)

    def lines(name: str, function: Any) -> tuple[int, int]:
        return lines_of_c(name), lines_of_python(function)

    many = 1 << 22
    few = many // 4
    return [
        Kernel(
            name="triple",
            ours=one(c.triple),
            theirs=warp.make_triple(),
            small=(normal(16),),
            large=(normal(many),),
            again=first,
            reference=lambda x: (3 * x,),
            shown="4M floats",
            work=many,
            lines=lines("triple", warp.make_triple),
        ),
        Kernel(
            name="sine_cosine",
            ours=c.sine_cosine,
            theirs=warp.make_sine_cosine(),
            small=(normal(16),),
            large=(normal(many),),
            again=first,
            reference=lambda x: (np.sin(x), np.cos(x)),
            shown="4M floats",
            work=many,
            lines=lines("sine_cosine", warp.make_sine_cosine),
        ),
        Kernel(
            name="scale_vec",
            ours=one(lambda v: c.scale_vec(v, 0.5)),
            theirs=lambda v: scale_vec(v, 0.5),
            small=(normal(8, 2),),
            large=(normal(many // 2, 2),),
            again=first,
            reference=lambda v: (v * np.float32(0.5),),
            shown="2M pairs",
            work=many // 2,
            lines=lines("scale_vec", warp.make_scale_vec),
        ),
        Kernel(
            name="matmul",
            ours=one(c.matmul),
            theirs=warp.make_matmul(),
            small=(normal(4, 4), normal(4, 4)),
            large=(normal(512, 512), normal(512, 512)),
            again=first,
            reference=lambda a, b: (a @ b,),
            shown="512 x 512",
            work=512**3,
            lines=lines("matmul", warp.make_matmul),
        ),
        Kernel(
            name="deposit",
            ours=one(c.deposit),
            theirs=warp.make_deposit(),
            small=(cells_of(16, 8), normal(16), normal(8)),
            large=(cells_of(few, 100_000), normal(few), normal(100_000)),
            again=lambda arrays, results: (*arrays[:2], results[0]),
            reference=deposit,
            shown="1M into 100k",
            work=few,
            lines=lines("deposit", warp.make_deposit),
        ),
    ]


def lines_of_c(name: str) -> int:
    """Lines of a function in examples/launch.c, with its pragma and without comments."""
    text = re.sub(r"/\*.*?\*/", "", SOURCE.read_text(), flags=re.DOTALL)
    found = re.search(rf"^#pragma[^\n]*\nvoid {name}\(.*?^}}$", text, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return found[0].count("\n") + 1


def lines_of_python(make: Callable[..., Any]) -> int:
    """Lines of a maker in rivals/launched_by_warp.py, without the def around them."""
    source = inspect.getsource(make)
    body = source.partition("\n")[2]
    return sum(bool(line.strip()) for line in body.splitlines())


def notes() -> Sequence[str]:
    """What the table has to be read with."""
    return (
        "Launch-style kernels: lines of the kernel as formatted in its file, with pragma or "
        "with jax_kernel and its launch dims; its call is one line in both. one call: in a "
        "chain inside of a jitted program, on 16 elements. per second: elements, or products "
        "of the matrix. "
        "Warp's kernels for a CPU run in one thread and are launched by a Python callback, "
        "inside which XLA waits; its numbers must be constants where jaxc's may be traced.",
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jaxc-bench-") as folder:
        os.environ["JAXC_CACHE_DIR"] = str(Path(folder) / "cache")
        os.environ["WARP_CACHE_PATH"] = str(Path(folder) / "warp")
        import report

        table = report.aligned(measure(options.quick), markdown=False)
        print("\n\n".join([TITLE, table, *notes(), report.machine(), report.LEGEND]))


if __name__ == "__main__":
    main()
