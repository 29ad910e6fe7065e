"""examples/launch.c against NumPy, in the ways that JAX calls a function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxc

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def lib() -> Any:
    return jaxc.load(ROOT / "examples" / "launch.c")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape).astype("float32")


def test_the_signatures_have_no_index(lib: Any) -> None:
    assert {name: lib[name].signature for name in lib} == {
        "triple": "(n)->(n)",
        "sine_cosine": "(n)->(n),(n)",
        "scale_vec": "(n,2),()->(n,2)",
        "matmul": "(n,k),(k,m)->(n,m)",
        "deposit": "(n),(n),(m)->(m)",
    }


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (100_000,), (3, 50), (400, 9)])
def test_one_index(lib: Any, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    x = normal(rng, *shape)
    np.testing.assert_array_equal(jax.jit(lib.triple)(x), 3 * x)
    sine, cosine = jax.vmap(lib.sine_cosine)(x) if len(shape) > 1 else lib.sine_cosine(x)
    np.testing.assert_allclose(sine, np.sin(x), atol=1e-6)
    np.testing.assert_allclose(cosine, np.cos(x), atol=1e-6)


def test_vectors_and_a_traced_number(lib: Any, rng: np.random.Generator) -> None:
    v, s = normal(rng, 1000, 2), normal(rng, 4)
    np.testing.assert_array_equal(jax.jit(lib.scale_vec)(v, s[0]), v * s[0])
    each = jax.vmap(lib.scale_vec, (None, 0))(v, s)
    np.testing.assert_array_equal(each, v * s[:, None, None])
    with pytest.raises(ValueError, match=r"argument 'v' has shape \(5, 3\), expected size 2"):
        lib.scale_vec(normal(rng, 5, 3), 1.0)


@pytest.mark.parametrize("sizes", [(3, 4, 2), (1, 1, 1), (2, 0, 3), (0, 4, 2), (150, 40, 170)])
def test_two_indices(lib: Any, rng: np.random.Generator, sizes: tuple[int, int, int]) -> None:
    n, k, m = sizes
    a, b = normal(rng, n, k), normal(rng, k, m)
    np.testing.assert_allclose(jax.jit(lib.matmul)(a, b), a @ b, rtol=1e-4, atol=1e-5)
    many = jax.vmap(lib.matmul, (None, 0))(a, jnp.stack([b, 2 * b]))
    np.testing.assert_allclose(many[1], 2 * (a @ b), rtol=1e-4, atol=1e-5)


def test_particles_that_share_cells(lib: Any, rng: np.random.Generator) -> None:
    cell = rng.integers(-2, 103, 300_000).astype("int32")
    mass = rng.integers(1, 5, 300_000).astype("float32")  # sums are exact
    density = np.ones(100, "float32")
    inside = (cell >= 0) & (cell < 100)
    expected = density.astype("float64")
    np.add.at(expected, cell[inside], mass[inside])
    np.testing.assert_array_equal(jax.jit(lib.deposit)(cell, mass, density), expected)
    np.testing.assert_array_equal(density, 1)
    donated = jnp.asarray(density)
    address = donated.unsafe_buffer_pointer()
    out = jax.jit(lib.deposit, donate_argnums=2)(cell, mass, donated)
    assert out.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(out, expected)


def test_check_finds_nothing(lib: Any, rng: np.random.Generator) -> None:
    jaxc.check(lib.triple, normal(rng, 9))
    jaxc.check(lib.sine_cosine, normal(rng, 9))
    jaxc.check(lib.scale_vec, normal(rng, 9, 2), 2.0)
    jaxc.check(lib.matmul, normal(rng, 3, 4), normal(rng, 4, 5))
    cell = rng.integers(0, 6, 50).astype("int32")
    jaxc.check(lib.deposit, cell, normal(rng, 50), normal(rng, 6))
