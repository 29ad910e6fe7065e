"""What one call costs: in a compiled program, and eagerly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxc
import rival
from report import Row, compare
from timing import Samples, interleave, timed

EPS = 1e-5
CHAIN = 200
LOOP = 1000
#: An eager call may take 1.3 times as long as a jitted identity.
IDENTITY = 0.77

Norm = Callable[[jax.Array, float], jax.Array]


def reference(x: jax.Array, eps: float) -> jax.Array:
    """rms_norm in jax.numpy."""
    return x / jnp.sqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + eps)


def functions() -> dict[str, Norm]:
    """All ways to call rms_norm, by the names that the rows use."""
    here = Path(__file__).parent
    variants = jaxc.load(here / "variants.c")
    return {
        "jaxc": jaxc.load(here / "rms_norm.c").rms_norm,
        "jaxc static": variants.rms_norm_static,
        "jaxc simd": variants.rms_norm_simd,
        "C++ Attr": rival.attribute,
        "C++ Buffer": rival.operand,
        "jnp": reference,
    }


def in_programs(rounds: int, norms: dict[str, Norm]) -> list[Row]:
    """Rows for 200 calls in a line and for a loop, each call fed by the one before."""
    names = ("jaxc", "jaxc static", "C++ Attr", "C++ Buffer")
    rows = []
    for what, program, count, repeat in (
        (f"call in a jitted chain of {CHAIN}", _chain, CHAIN, 20),
        (f"call in a fori_loop of {LOOP}", _loop, LOOP, 5),
    ):
        x = jnp.arange(1.0, 17.0)
        programs = {name: jax.jit(program(norms[name])) for name in names}
        for name in names:
            np.testing.assert_allclose(programs[name](x), program(reference)(x), rtol=1e-4)
        measured = interleave(
            {name: timed(_waits(programs[name], x), repeat) for name in names}, rounds
        )
        each = {name: samples / count for name, samples in measured.items()}
        rows += _pairs(what, each)
    return rows


def _pairs(what: str, each: dict[str, Samples]) -> list[Row]:
    """The tutorial's handler first, then like with like."""
    return [
        compare(f"{what}: eps operand", each["jaxc"], "C++, eps Attr", each["C++ Attr"], 1),
        compare(f"{what}: eps operand", each["jaxc"], "C++, eps Buffer", each["C++ Buffer"], 1),
        compare(
            f"{what}: eps static", each["jaxc static"], "C++, eps Attr", each["C++ Attr"], 1
        ),
    ]


def _chain(norm: Norm) -> Callable[[jax.Array], jax.Array]:
    def chain(x: jax.Array) -> jax.Array:
        for _ in range(CHAIN):
            x = norm(x, EPS)
        return x

    return chain


def _loop(norm: Norm) -> Callable[[jax.Array], jax.Array]:
    def loop(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, LOOP, lambda _, y: norm(y, EPS), x)

    return loop


def _waits(program: Callable[..., jax.Array], *arguments: object) -> Callable[[], object]:
    return lambda: program(*arguments).block_until_ready()


def eager(rounds: int, norms: dict[str, Norm]) -> list[Row]:
    """Rows for a call outside of jit, waited for."""
    x = jnp.arange(1.0, 17.0)
    names = {"jaxc": 200, "C++ Attr": 50, "jnp": 50}
    for name in names:
        np.testing.assert_allclose(norms[name](x, EPS), reference(x, EPS), rtol=1e-5)
    candidates = {
        name: timed(_waits(norms[name], x, EPS), repeat) for name, repeat in names.items()
    }
    identities = {
        # Takes both arguments to the device, as a call that needs them has to.
        "identity": jax.jit(lambda x, eps: x, keep_unused=True),
        "identity of one": jax.jit(lambda x, eps: x),
    }
    for name, identity in identities.items():
        candidates[name] = timed(_waits(identity, x, EPS), 200)
    measured = interleave(candidates, rounds)
    what = "eager call on 16 floats"
    return [
        compare(what, measured["jaxc"], "ffi_call of C++", measured["C++ Attr"], 4),
        compare(what, measured["jaxc"], "jax.numpy", measured["jnp"]),
        compare(what, measured["jaxc"], "jit, identity", measured["identity"], IDENTITY),
        compare(
            what, measured["jaxc"], "jit, identity, drops eps", measured["identity of one"]
        ),
    ]
