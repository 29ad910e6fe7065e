"""The examples: each against NumPy or SciPy, in the ways that JAX calls a function."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import jaxc

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "examples").glob("*.c"))
FLAGS = (
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wno-unknown-pragmas",
    "-Werror",
)

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Make = Callable[[np.random.Generator, Shape], Array]


@functools.cache
def example(name: str) -> Any:
    """The function of examples/<name>.c, which has the file's name."""
    return jaxc.load(ROOT / "examples" / f"{name}.c")[name]


# Operands: a function of a random generator and the leading axes.


def normal(*core: int, dtype: Any = "float32", scale: float = 1, offset: float = 0) -> Make:
    def make(rng: np.random.Generator, leading: Shape) -> Array:
        values = offset + scale * rng.standard_normal(leading + core)
        return np.asarray(values).astype(dtype)

    return make


def uniform(*core: int, low: float, high: float, dtype: Any = "float32") -> Make:
    def make(rng: np.random.Generator, leading: Shape) -> Array:
        return np.asarray(rng.uniform(low, high, leading + core)).astype(dtype)

    return make


def letters(size: int) -> Make:
    def make(rng: np.random.Generator, leading: Shape) -> Array:
        return np.asarray(rng.choice(np.frombuffer(b"acgt", np.uint8), (*leading, size)))

    return make


def increasing(size: int) -> Make:
    def make(rng: np.random.Generator, leading: Shape) -> Array:
        return np.asarray(np.cumsum(rng.uniform(0.1, 1, (*leading, size)), -1))

    return make


def complex_disc(rng: np.random.Generator, leading: Shape) -> Array:
    """Points around the Mandelbrot set."""
    radius, angle = rng.uniform(0, 2, leading), rng.uniform(0, 2 * np.pi, leading)
    return np.asarray(radius * np.exp(1j * angle))


# References: one row of NumPy each.


def rms_norm(x: Array, eps: Array) -> Array:
    return np.asarray(x / np.sqrt(np.mean(x.astype("float64") ** 2) + eps))


def edit_distance(a: Array, b: Array) -> int:
    """The recurrence as it is defined, not row by row."""

    @functools.cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j - 1) + int(a[i - 1] != b[j - 1]),
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
        )

    return distance(len(a), len(b))


def mandelbrot(c: Array, limit: int) -> int:
    z = 0j
    for k in range(limit):
        if abs(z) > 2:
            return k
        z = z * z + complex(c)
    return limit


def log_cumsum_exp(x: Array) -> Array:
    return np.asarray(np.logaddexp.accumulate(x.astype("float64")))


def welford(x: Array) -> tuple[Any, Any]:
    return np.mean(x), np.var(x)


def linspace(start: Array, stop: Array, n: int) -> Array:
    return np.linspace(start, stop, n, dtype="float32")


def tridiagonal(lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    matrix = np.diag(lower, -1) + np.diag(diagonal) + np.diag(upper, 1)
    return np.linalg.solve(matrix, b)


def sor(u: Array, f: Array, omega: Array, h: Array) -> Array:
    u = u.copy()
    i, j = np.indices(u.shape)
    inside = (i > 0) & (i < u.shape[0] - 1) & (j > 0) & (j < u.shape[1] - 1)
    for colour in range(2):
        around = np.zeros_like(u)
        around[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        change = omega / 4 * (around - 4 * u - h**2 * f)
        u += np.where(inside & ((i + j) % 2 == colour), change, 0)
    return u


def bf16_scale(x: Array, a: Array) -> Array:
    return (x.astype("float32") * a).astype(jnp.bfloat16)


@dataclasses.dataclass(frozen=True)
class Case:
    """How to call an example, and what it must return.

    Attributes:
      name: of the file and of its function.
      operands: make the arguments that can have leading axes.
      reference: the result for one row, by NumPy or SciPy.
      statics: arguments that are Python values.
      rtol: how far results may differ; exact when 0.
      x64: whether it needs 64-bit types.
    """

    name: str
    operands: tuple[Make, ...]
    reference: Callable[..., Any]
    statics: Mapping[str, int] = dataclasses.field(default_factory=dict)
    rtol: float = 1e-12
    x64: bool = True

    def call(self, *operands: Any) -> Any:
        return example(self.name)(*operands, **self.statics)

    def make(self, rng: np.random.Generator, *leading: Shape) -> list[Array]:
        """Arguments, each with its own leading axes; () where there are none left."""
        axes = [*leading, *[()] * len(self.operands)]
        return [make(rng, own) for make, own in zip(self.operands, axes, strict=False)]

    def expected(self, *operands: Array) -> list[Array]:
        """The reference for each row of the broadcast leading axes."""
        cores = [make(np.random.default_rng(0), ()).ndim for make in self.operands]
        heads = [x.shape[: x.ndim - core] for x, core in zip(operands, cores, strict=True)]
        leading = np.broadcast_shapes(*heads)
        full = [
            np.broadcast_to(x, leading + x.shape[len(head) :])
            for x, head in zip(operands, heads, strict=True)
        ]
        rows = [
            as_list(self.reference(*(x[row] for x in full), **self.statics))
            for row in np.ndindex(leading)
        ]
        return [np.reshape(r, leading + np.shape(r[0])) for r in zip(*rows, strict=True)]

    def check(self, got: Any, operands: list[Array]) -> None:
        expected = self.expected(*operands)
        results = as_list(got)
        assert len(results) == len(expected)
        for result, value in zip(results, expected, strict=True):
            assert result.shape == value.shape
            np.testing.assert_allclose(
                np.asarray(result).astype(value.dtype), value, self.rtol, self.rtol
            )


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


CASES = [
    Case("rms_norm", (normal(7), uniform(low=0.1, high=1)), rms_norm, rtol=1e-5, x64=False),
    Case("rotate", (normal(3, 3), normal(3)), np.matmul, rtol=1e-5, x64=False),
    Case(
        "fir",
        (normal(9), normal(4)),
        functools.partial(np.convolve, mode="valid"),
        rtol=1e-5,
        x64=False,
    ),
    Case(
        "tridiagonal",
        (
            normal(5, dtype="float64"),
            normal(6, dtype="float64", offset=9),
            normal(5, dtype="float64"),
            normal(6, dtype="float64"),
        ),
        tridiagonal,
    ),
    Case("edit_distance", (letters(8), letters(6)), edit_distance, rtol=0, x64=False),
    # Few steps: rounding, which may differ, grows with each and could move an escape.
    Case("mandelbrot", (complex_disc,), mandelbrot, {"limit": 12}, rtol=0),
    Case("log_cumsum_exp", (normal(20, scale=30),), log_cumsum_exp, rtol=1e-5, x64=False),
    Case("welford", (normal(11, dtype="float64", offset=5),), welford),
    Case(
        "interp",
        (
            uniform(low=-1, high=6, dtype="float64"),
            increasing(8),
            normal(8, dtype="float64"),
        ),
        np.interp,
    ),
    Case("digamma", (uniform(low=-5, high=20, dtype="float64"),), scipy.special.digamma),
    Case("linspace", (normal(), normal()), linspace, {"n": 6}, rtol=1e-6, x64=False),
    Case(
        "sor",
        (
            normal(5, 6, dtype="float64"),
            normal(5, 6, dtype="float64"),
            uniform(low=1, high=2, dtype="float64"),
            uniform(low=0.1, high=1, dtype="float64"),
        ),
        sor,
    ),
    Case(
        "bf16_scale",
        (normal(9, dtype=jnp.bfloat16), normal()),
        bf16_scale,
        rtol=0,
        x64=False,
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    """Each example; 64-bit types are on only where it needs them."""
    out: Case = request.param
    with x64() if out.x64 else contextlib.nullcontext():
        yield out


def x64() -> Any:
    return jax.enable_x64(True)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


def test_plain(case: Case, rng: np.random.Generator) -> None:
    operands = case.make(rng)
    case.check(case.call(*operands), operands)


def test_takes_jax_arrays(case: Case, rng: np.random.Generator) -> None:
    operands = case.make(rng)
    case.check(case.call(*map(jnp.asarray, operands)), operands)


def test_batch_through_leading_axes(case: Case, rng: np.random.Generator) -> None:
    operands = case.make(rng, (3, 4))
    case.check(case.call(*operands), operands)


def test_leading_axes_broadcast(case: Case, rng: np.random.Generator) -> None:
    operands = case.make(rng, (3, 1), (4,), (2, 1, 1))
    case.check(case.call(*operands), operands)


def test_jit(case: Case, rng: np.random.Generator) -> None:
    operands = case.make(rng, (2,))
    case.check(jax.jit(case.call)(*operands), operands)


def test_vmap_over_first_operand(case: Case, rng: np.random.Generator) -> None:
    """All other operands are unmapped."""
    operands = case.make(rng, (5,))
    axes = [0] + [None] * (len(operands) - 1)
    case.check(jax.vmap(case.call, axes)(*operands), operands)


def test_vmap_over_last_operand(case: Case, rng: np.random.Generator) -> None:
    """All other operands are unmapped; the mapped axis is the last."""
    others = [()] * (len(case.operands) - 1)
    operands = case.make(rng, *others, (5,))
    moved = [*operands[:-1], np.moveaxis(operands[-1], 0, -1)]
    axes = [*[None] * len(others), -1]
    case.check(jax.vmap(case.call, axes)(*moved), operands)


def test_nested_vmap_is_an_outer_product(case: Case, rng: np.random.Generator) -> None:
    first = case.make(rng, (2,))
    axes = [0] + [None] * (len(first) - 1)
    if len(first) == 1:
        operands = case.make(rng, (3, 2))
        case.check(jax.jit(jax.vmap(jax.vmap(case.call)))(*operands), operands)
        return
    operands = case.make(rng, (3, 1), (2,))
    mapped = [operands[0][:, 0], *operands[1:]]
    inner = jax.vmap(case.call, [None, 0, *[None] * (len(first) - 2)])
    case.check(jax.jit(jax.vmap(inner, axes))(*mapped), operands)


def test_empty_batch(case: Case, rng: np.random.Generator) -> None:
    row = as_list(case.call(*case.make(rng)))
    for call in (case.call, jax.jit(case.call)):
        empty = as_list(call(*case.make(rng, (3, 0))))
        assert [r.shape for r in empty] == [(3, 0, *r.shape) for r in row]
        assert [r.dtype for r in empty] == [r.dtype for r in row]


def test_docstring_is_the_comment(case: Case) -> None:
    doc = example(case.name).__doc__
    assert "->" in doc  # each comment names its shapes
    assert doc.endswith(f"C: {example(case.name).prototype}")


# What is particular to one example.


def test_rms_norm_keeps_zeros() -> None:
    assert not np.any(example("rms_norm")(np.zeros((2, 5), "float32"), 1e-5))


def test_rotate_turns_points_in_many_frames(rng: np.random.Generator) -> None:
    frames = np.stack([np.eye(3), [[0, -1, 0], [1, 0, 0], [0, 0, 1]]]).astype("float32")
    points = rng.standard_normal((4, 3)).astype("float32")
    turned = example("rotate")(frames[:, None], points)
    np.testing.assert_allclose(turned, np.einsum("tij,mj->tmi", frames, points), 1e-6)


def test_rotate_refuses_points_of_the_plane() -> None:
    message = r"^rotate: argument 'p' has shape \(5, 2\), expected size 3 on axis -1"
    with pytest.raises(ValueError, match=message):
        example("rotate")(np.eye(3, dtype="float32"), np.ones((5, 2), "float32"))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (5, 5), (4, 5), (1000, 37)])
def test_fir_sizes(n: int, k: int, rng: np.random.Generator) -> None:
    x, w = rng.standard_normal(n), rng.standard_normal(k)
    y = example("fir")(x.astype("float32"), w.astype("float32"))
    expected = np.convolve(x, w, "valid") if n >= k else np.zeros(0)
    np.testing.assert_allclose(y, expected, 1e-4, 1e-4)


def test_fir_longer_than_the_signal() -> None:
    message = "fir: the size n - k [+] 1 of 'y' is -1 for n = 3, k = 5"
    with pytest.raises(ValueError, match=message):
        example("fir")(np.ones(3, "float32"), np.ones(5, "float32"))


@pytest.mark.parametrize("n", [1, 2, 1000])  # 1000: scratch does not fit the stack
def test_tridiagonal_like_scipy(n: int, rng: np.random.Generator) -> None:
    lower, upper = rng.standard_normal((2, n - 1))
    diagonal, b = 9 + rng.standard_normal(n), rng.standard_normal(n)
    bands = np.zeros((3, n))
    bands[0, 1:], bands[1], bands[2, :-1] = upper, diagonal, lower
    with x64():
        x = example("tridiagonal")(lower, diagonal, upper, b)
    np.testing.assert_allclose(x, scipy.linalg.solve_banded((1, 1), bands, b), 1e-12)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_tridiagonal_names_the_zero_pivot(transform: Callable[..., Any]) -> None:
    ones = np.ones(3)
    zero_in_row_1 = np.array([1.0, 1.0, 5.0])  # 1 - 1 * 1 / 1
    with x64():
        solve = transform(example("tridiagonal"))
        message = "tridiagonal: returned status 2; 0 is success"
        with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(message)):
            jax.block_until_ready(solve(ones[:2], zero_in_row_1, ones[:2], ones))
        diagonals = np.stack([9 * ones, zero_in_row_1, 0 * ones])
        message = "tridiagonal: returned status 2 (batch row 1 of 3); 0 is success"
        with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(message)):
            jax.block_until_ready(solve(ones[:2], diagonals, ones[:2], ones))
        x = solve(ones[:2], 9 * ones, ones[:2], ones)  # an error leaves nothing behind
        np.testing.assert_allclose(x, tridiagonal(ones[:2], 9 * ones, ones[:2], ones))


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (b"kitten", b"sitting", 3),
        (b"", b"", 0),
        (b"", b"abc", 3),
        (b"abc", b"", 3),
        (b"\x00\xff", b"\xff\x00", 2),
        (b"a" * 3000, b"b" * 2000, 3000),
    ],
)
def test_edit_distance_of_known_strings(a: bytes, b: bytes, distance: int) -> None:
    operands = (np.frombuffer(text, np.uint8) for text in (a, b))
    result = example("edit_distance")(*operands)
    assert result == distance
    assert result.dtype == np.int32


def test_mandelbrot_limit_is_static() -> None:
    # The first five never escape; -2 stays on the rim of the disc.
    points = np.array([0, -1, 0.25, 1j, -2, 1, 1.5 + 1.5j])
    with x64():
        mandelbrot_c = example("mandelbrot")
        for limit in (0, 1, 3, 1000):
            counts = mandelbrot_c(points, limit)
            np.testing.assert_array_equal(counts, np.minimum([limit] * 5 + [3, 1], limit))
        jitted = jax.jit(mandelbrot_c, static_argnames="limit")
        assert jitted(0j, limit=7) == 7
        with pytest.raises(TypeError, match="'limit' must be a Python value, got a traced"):
            jax.jit(mandelbrot_c)(0j, 7)


def test_log_cumsum_exp_of_extremes() -> None:
    inf, nan = np.inf, np.nan
    rows = np.array(
        [
            [1e4, 1e4, -1e4, 2e4, -3e38, 3e38],
            [-inf, -inf, 1, -inf, 1, 2],
            [0, inf, 0, inf, -inf, inf],
            [0, nan, 0, inf, -inf, 1],
            [nan, inf, 0, 0, 0, 0],
        ],
        "float32",
    )
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.accumulate(rows.astype("float64"), axis=-1)
    np.testing.assert_allclose(example("log_cumsum_exp")(rows), expected, 1e-6)


def test_log_cumsum_exp_of_a_long_row() -> None:
    """The result is 1000 + log(i + 1); adding to it in float would stop growing."""
    n = 1_000_000
    y = example("log_cumsum_exp")(np.full(n, 1000, "float32"))
    np.testing.assert_allclose(y, 1000 + np.log(np.arange(1, n + 1)), 1e-6)


def test_welford_far_from_zero(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, 1000) + 2.0**30
    with x64():
        mean, variance = example("welford")(x)
        np.testing.assert_allclose(mean, np.mean(x), 1e-15)
        np.testing.assert_allclose(variance, np.var(x), 1e-6)


def test_welford_of_nothing_is_nan() -> None:
    with x64():
        assert all(np.isnan(example("welford")(np.zeros(0))))
        assert np.isnan(example("welford")(np.zeros((4, 0)))[1]).all()


def test_interp_edges() -> None:
    xp, fp = np.array([0.0, 1, 3]), np.array([5.0, 7, -1])
    x = np.array([-np.inf, -1, 0, 0.5, 1, 2, 3, 4, np.inf, np.nan])
    with x64():
        interp = example("interp")
        np.testing.assert_allclose(interp(x, xp, fp), np.interp(x, xp, fp))
        np.testing.assert_allclose(interp(x, xp[:1], fp[:1]), [5.0] * 9 + [np.nan])
        assert np.isnan(interp(1.0, xp[:0], fp[:0]))


def test_digamma_like_scipy() -> None:
    x = np.concatenate(
        [
            np.linspace(-20.3, 30, 5001),
            np.geomspace(1e-300, 1e300, 601),
            -np.geomspace(1e-300, 0.1, 301),
            [np.inf],
        ]
    )
    x = x[(x > 0) | (x != np.round(x))]
    with x64():
        got = np.asarray(example("digamma")(x))
    np.testing.assert_allclose(got, scipy.special.digamma(x), 1e-13, 1e-13)


def test_digamma_special_values() -> None:
    euler = 0.57721566490153286061
    x = np.array([1, 0.5, 2, 0, -0.0, -1, -20, -np.inf, np.nan])
    expected = [-euler, -euler - 2 * np.log(2), 1 - euler, *[np.nan] * 6]
    with x64():
        np.testing.assert_allclose(example("digamma")(x), expected, 1e-15)


@pytest.mark.parametrize("n", [0, 1, 2, 11, 100_003])
def test_linspace_sizes(n: int) -> None:
    y = example("linspace")(-0.3, 7.1, n=n)
    np.testing.assert_allclose(y, np.linspace(-0.3, 7.1, n), 1e-6, 1e-6)
    if n > 1:
        assert y[0] == np.float32(-0.3)
        assert y[-1] == np.float32(7.1)


def test_linspace_needs_its_size() -> None:
    with pytest.raises(TypeError, match=r"linspace: dimension 'n' is missing.*n=\.\.\."):
        example("linspace")(0.0, 1.0)


def test_sor_solves_poisson() -> None:
    """The five-point formula is exact for u = x^2 - y^2 + x y (x - y)."""
    n = 17
    h = 1 / (n - 1)
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
    solution = x**2 - y**2 + x * y * (x - y)
    f = 2 * (y - x)
    start = solution.copy()
    start[1:-1, 1:-1] = 0
    omega = 2 / (1 + np.sin(np.pi * h))

    def sweeps(u: jax.Array) -> Any:
        return jax.lax.fori_loop(0, 100, lambda _, u: example("sor")(u, f, omega, h), u)

    with x64():
        np.testing.assert_allclose(jax.jit(sweeps)(start), solution, atol=1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (1, 4), (2, 2), (3, 2)])
def test_sor_without_inner_points(shape: Shape, rng: np.random.Generator) -> None:
    u = rng.standard_normal(shape)
    with x64():
        np.testing.assert_array_equal(example("sor")(u, 0 * u, 1.0, 1.0), u)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("library", [np, jnp], ids=["numpy", "jax"])
def test_sor_leaves_the_callers_array(
    transform: Callable[..., Any], library: Any, rng: np.random.Generator
) -> None:
    before = rng.standard_normal((32, 32))
    with x64():
        u = library.array(before)
        v = jax.block_until_ready(transform(example("sor"))(u, 0 * u, 1.0, 1.0))
        np.testing.assert_array_equal(u, before)
        assert np.any(np.asarray(v) != before)


def test_sor_in_a_donated_buffer(rng: np.random.Generator) -> None:
    with x64():
        before = rng.standard_normal((32, 32))
        u, f = jnp.array(before), jnp.zeros((32, 32))
        address = u.unsafe_buffer_pointer()
        v = jax.jit(example("sor"), donate_argnums=0)(u, f, 1.5, 1.0)
        assert v.unsafe_buffer_pointer() == address
        assert u.is_deleted()
        np.testing.assert_allclose(v, sor(before, 0 * before, np.array(1.5), np.array(1.0)))


def test_sor_copies_a_shared_start(rng: np.random.Generator) -> None:
    """One u for several omegas: each row needs its own copy."""
    u = rng.standard_normal((6, 7))
    omegas = np.array([1, 1.5, 1.9])
    with x64():
        v = jax.vmap(example("sor"), (None, None, 0, None))(u, 0 * u, omegas, 1.0)
    for row, omega in zip(np.asarray(v), omegas, strict=True):
        np.testing.assert_allclose(row, sor(u, 0 * u, omega, np.array(1.0)), 1e-12)


def test_bf16_scale_of_special_values() -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 3e38]).astype(jnp.bfloat16)
    got = np.asarray(example("bf16_scale")(x, 3.0))
    with np.errstate(over="ignore"):
        expected = bf16_scale(x, np.array(3, "float32"))
    np.testing.assert_array_equal(got.astype("float32"), expected.astype("float32"))
    assert np.signbit(got[1].astype("float32"))


# The files.


def test_each_example_has_a_case() -> None:
    names = {case.name for case in CASES} | {"launch", "rms_norm_grad"}
    assert [file.stem for file in FILES] == sorted(names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_layout(file: Path) -> None:
    lines = file.read_text(encoding="ascii").splitlines()
    assert re.fullmatch(rf"/\* {re.escape(file.name)}: .+\. \*/", lines[0])
    assert "SPDX-License-Identifier: Apache-2.0" in lines[1]
    assert max(map(len, lines)) <= 90
    assert not any(line != line.rstrip() or "\t" in line for line in lines)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_compiles_without_warnings(file: Path, compiler: str, tmp_path: Path) -> None:
    """At -O2, because some warnings need what the optimiser knows."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    output = ["-c", str(file), "-o", str(tmp_path / "example.o")]
    done = subprocess.run(
        [compiler, *FLAGS, "-O2", "-I", str(ROOT / "include"), *output],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# The example with derivatives has several functions, so it is no Case.


def test_rms_norm_grad_agrees_with_jax_and_finite_differences() -> None:
    lib = jaxc.load(ROOT / "examples" / "rms_norm_grad.c")
    x = np.random.default_rng(0).standard_normal((3, 8)).astype("float32")

    def reference(x: Any, eps: Any) -> Any:
        return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)

    def losses(function: Any) -> Any:
        return jax.value_and_grad(lambda x, e: jnp.sum(function(x, e) ** 3), (0, 1))

    for wrap in (lambda f: f, jax.jit):
        ours, theirs = (wrap(losses(f))(x, 0.1) for f in (lib.rms_norm, reference))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-5), ours, theirs)
    tangents = (np.cos(x), np.float32(0.3))
    ours, theirs = (
        jax.jvp(f, (x, np.float32(0.1)), tangents) for f in (lib.rms_norm, reference)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-5), ours, theirs)
    jaxc.check(lib.rms_norm, x[0], 0.1)
