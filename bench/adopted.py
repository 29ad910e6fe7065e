"""What a call costs when the function is adopted: a ufunc's loop, a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxc
from report import Row, compare
from timing import interleave, timed

CHAIN = 200
SHORT = 20
LARGE = 1_000_000
#: Most a callback may cost in a program, in microseconds.
MOST_US = 6.0

Step = Callable[[Any], Any]


def measure(rounds: int) -> list[Row]:
    """Rows for ufuncs and callbacks, beside ``jax.pure_callback`` on the same work."""
    return [*_ufunc(rounds), *_callback(rounds)]


def _ufunc(rounds: int) -> list[Row]:
    try:
        from scipy import special
    except ImportError as error:
        return [Row("ufunc", "", "scipy.special", str(error))]
    j1 = jaxc.ufunc(special.j1)
    one = jnp.full((1,), 0.5)
    what = f"ufunc j1 in a jitted chain of {CHAIN}, n = 1"
    steps: dict[str, tuple[Step, int]] = {
        "jaxc": (j1, CHAIN),
        "pure_callback": (_pure(special.j1, one), SHORT),
    }
    rows = _chains(what, steps, one, special.j1, rounds, 15)
    x = jnp.asarray(np.random.default_rng(0).uniform(0, 20, LARGE), jnp.float32)
    host = np.asarray(x)
    programs = {"jaxc": jax.jit(j1), "pure_callback": jax.jit(_pure(special.j1, x))}
    for program in programs.values():
        np.testing.assert_array_equal(program(x), special.j1(host))
    measured = interleave(
        {
            **{name: timed(_waits(program, x)) for name, program in programs.items()},
            "SciPy alone, one thread": timed(lambda: special.j1(host)),
        },
        rounds,
    )
    ours = measured.pop("jaxc")
    what = f"ufunc j1, n = {LARGE:,}"
    return [*rows, *(compare(what, ours, name, theirs, 1) for name, theirs in measured.items())]


def _callback(rounds: int) -> list[Row]:
    x = jnp.arange(16.0)

    @jaxc.callback("(n)->(n)")
    def increment(x: Any, out: Any) -> None:
        np.add(x, 1, out=out)

    def expected(x: Any) -> Any:
        return np.asarray(x) + np.float32(1)

    steps: dict[str, tuple[Step, int]] = {
        "jaxc": (increment, CHAIN),
        "pure_callback": (_pure(expected, x), SHORT),
    }
    what = f"Python callback in a jitted chain of {CHAIN}, 16 floats"
    return _chains(what, steps, x, expected, rounds, 15, MOST_US)


def _chains(
    what: str,
    steps: dict[str, tuple[Step, int]],
    x: Any,
    expected: Step,
    rounds: int,
    goal: float,
    most_us: float | None = None,
) -> list[Row]:
    """A row for each rival, and one where a call may cost no more than ``most_us``."""
    programs = {name: _chain(*step) for name, step in steps.items()}
    for name, program in programs.items():
        value = np.asarray(x)
        for _ in range(steps[name][1]):
            value = expected(value)
        np.testing.assert_array_equal(program(x), value)
    measured = interleave(
        {name: timed(_waits(program, x), 5) for name, program in programs.items()}, rounds
    )
    each = {name: samples / steps[name][1] for name, samples in measured.items()}
    ours = each.pop("jaxc")
    rows = [compare(what, ours, name, theirs, goal) for name, theirs in each.items()]
    if most_us is not None:
        is_met = ours.minimum <= most_us * 1e-6
        rows.append(Row(what, str(ours), goal=f"<= {most_us:g} us", met=is_met))
    return rows


def _pure(function: Step, x: Any) -> Step:
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return lambda x: jax.pure_callback(lambda x: function(np.asarray(x)), result, x)


def _chain(step: Step, count: int) -> Step:
    def chain(x: Any) -> Any:
        for _ in range(count):
            x = step(x)
        return x

    return jax.jit(chain)


def _waits(program: Step, x: Any) -> Callable[[], object]:
    return lambda: program(x).block_until_ready()
