"""``#pragma jaxc grid``: functions that are called for each point of a grid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxc
from jaxc import _jaxc, host  # type: ignore[attr-defined]
from jaxc.description import OPERANDS, RESULTS, Role

SOURCE = r"""
#include <jaxc/grid.h>
#include <math.h>
#include <stddef.h>
#define TWO 2
#define PLANES (TWO + 1)
enum { MOST = 4 };

#pragma jaxc grid(i < n, j < m)
void outer(int i, int j, int n, int m, const float x[n], const float y[m], float out[n][m]) {
  out[i][j] = x[i] * y[j];
}

/* The order of the pragma, not that of the prototype; macros and enums as ranges. */
#pragma jaxc grid(a < TWO, b < n, c < PLANES, d < k)
void four(int d, short c, long b, unsigned char a, int n, int k, const int x[n][k],
          int y[2][n][3][k]) {
  y[a][b][c][d] = x[b][d] + 10 * c + 100 * a;
}

#pragma jaxc grid(z < (n), y < 2 * n, x < (n + MOST) - (4))
void three(size_t x, size_t y, size_t z, size_t n, const double a[n], double out[n][2 * n][n]) {
  out[z][y][x] = a[z] * 100 + (double)y * 10 + (double)x;
}

#pragma jaxc grid(i < n - 1)
#pragma jaxc zero(y)
void forward(int i, int n, const float x[n], float y[n]) { y[i] = x[i + 1] - x[i]; }

#pragma jaxc grid(i < n)
void sines(int i, int n, const float x[n], float s[n], float c[n]) {
  s[i] = sinf(x[i]);
  c[i] = cosf(x[i]);
}

#pragma jaxc grid(i < n) zero(total, low)
void sums(int i, int n, const int x[n], long long *total, int *low) {
  jaxc_atomic_add(total, x[i]);
  jaxc_atomic_min(low, x[i]);
}

#pragma jaxc grid(i < n) zero(bins)
void histogram(int i, int n, const int x[n], int k, int bins[k]) {
  jaxc_atomic_add(&bins[x[i]], 1);
}

#pragma jaxc grid(i < n) zero(total)
void total(int i, int n, const float x[n], float *total) { jaxc_atomic_add(total, x[i]); }
#pragma jaxc grid(i < n)
void total_bwd(int i, int n, float ct_total, float ct_x[n]) { ct_x[i] = ct_total; }
#pragma jaxc grid(i < n) zero(d_total)
void total_jvp(int i, int n, const float d_x[n], float *d_total) {
  jaxc_atomic_add(d_total, d_x[i]);
}

#pragma jaxc grid(i < n) inout(x)
void grow(int i, int n, float a, float x[n]) { x[i] += a * (float)(i + 1); }

#pragma jaxc grid(i < k) inout(y)
void scatter(int i, int k, const int at[k], const float v[k], int n, float y[n]) {
  jaxc_atomic_add(&y[at[i]], v[i]);
}

#pragma jaxc grid(i < steps) zero(y)
void times(int i, int steps, int n, const float x[n], float y[n]) {
  for (int k = 0; k < n; k++) jaxc_atomic_add(&y[k], x[k] + 0 * (float)i);
}

#pragma jaxc grid(i < n)
void ramp(int i, int n, double begin, double step, double y[n]) { y[i] = begin + step * i; }

#pragma jaxc grid(i < n) scratch(w)
void squares(int i, int n, const float x[n], float w[4], float y[n]) {
  for (int k = 0; k < 4; k++) w[k] = x[i] * (float)k;
  y[i] = w[1] + w[2] + w[3];
}

#pragma jaxc grid(i < n) serial
void counted(int i, int n, const int x[n], int y[n]) {
  static int calls;
  if (i == 0) calls = 0;
  y[i] = x[i] + calls++;
}

typedef float mat[3][3];
#pragma jaxc grid(i < n)
void turn(int i, int n, const float R[3][3], const float p[n][3], float q[n][3]) {
  for (int a = 0; a < 3; a++) {
    q[i][a] = 0;
    for (int b = 0; b < 3; b++) q[i][a] += R[a][b] * p[i][b];
  }
}

#pragma jaxc grid(i < n)
void scaled(int i, int n, const float x[n], float a, float y[n]) { y[i] = a * x[i]; }
#pragma jaxc grid(i < n)
void scaled_jvp(int i, int n, const float x[n], float a, const float d_x[n], float d_a,
                float d_y[n]) {
  d_y[i] = d_a * x[i] + a * d_x[i];
}
#pragma jaxc grid(i < n) zero(ct_a)
void scaled_bwd(int i, int n, const float x[n], float a, const float ct_y[n], float ct_x[n],
                float *ct_a) {
  ct_x[i] = a * ct_y[i];
  jaxc_atomic_add(ct_a, ct_y[i] * x[i]);
}

#pragma jaxc grid(i < 2 * n)
void tiny(signed char i, int n, const float x[n], float y[2 * n]) { y[i] = x[i / 2]; }

#pragma jaxc grid(i < m / n)
void split(int i, int n, int m, const float x[m], const float w[n], float y[m]) {
  y[i] = x[i] + w[0];
}

#pragma jaxc grid(i < n)
void unwritten(int i, int n, const float x[n], float y[n]) {
  if (i % 2 == 0) y[i] = x[i];
}

#pragma jaxc zero(y)
void sparse(int n, const float x[n], float y[n]) {
  for (int i = 0; i < n; i++) {
    if (x[i] > 0) y[i] = x[i];
  }
}
"""


@pytest.fixture(scope="module")
def lib() -> Any:
    return jaxc.compile(SOURCE, name="grids")


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# ---- what a grid computes ----


def test_an_index_is_neither_an_argument_nor_a_dimension(lib: Any) -> None:
    assert lib.outer.signature == "(n),(m)->(n,m)"
    assert list(lib.outer.__signature__.parameters) == ["x", "y"]
    assert [dim.name for dim in lib.outer.description.dims] == ["n", "m"]
    indices = lib.four.description.indices
    assert [(p.name, p.bounds[0].text) for p in indices] == [
        ("a", "2"), ("b", "n"), ("c", "2 + 1"), ("d", "k"),
    ]  # fmt: skip
    assert {p.role for p in indices} == {Role.INDEX}
    with pytest.raises(TypeError, match="outer: has no argument 'i'; it takes x, y"):
        lib.outer(floats(3), floats(4), i=1)


@pytest.mark.parametrize(("n", "m"), [(3, 4), (1, 1), (1, 70001), (70001, 1), (600, 701)])
def test_every_point_is_called_once_at_any_size(lib: Any, n: int, m: int) -> None:
    x, y = floats(n), floats(m, seed=1)
    np.testing.assert_array_equal(jax.jit(lib.outer)(x, y), np.outer(x, y))


@pytest.mark.parametrize("size", [(0, 3), (3, 0), (0, 0)])
def test_a_range_of_zero_has_no_points(lib: Any, size: tuple[int, int]) -> None:
    assert lib.outer(floats(size[0]), floats(size[1])).shape == size


@pytest.mark.parametrize("rows", [(), (1,), (3,), (40,), (300,)])
def test_four_indices_of_four_types_follow_the_pragma_s_order(
    lib: Any, rows: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).integers(0, 9, (*rows, 7, 130)).astype(np.int32)
    planes = 10 * np.arange(3)[:, None] + 100 * np.arange(2)[:, None, None, None]
    expected = x[..., None, :, None, :] + planes
    np.testing.assert_array_equal(jax.jit(lib.four)(x), expected)


def test_ranges_are_expressions(lib: Any, x64: None) -> None:
    a = np.arange(1.0, 40)
    y, x = np.arange(78)[:, None] * 10, np.arange(39)
    np.testing.assert_array_equal(lib.three(a), a[:, None, None] * 100 + y + x)


def test_a_negative_range_has_no_points_and_zero_still_clears(lib: Any) -> None:
    assert lib.forward(floats(0)).shape == (0,)
    np.testing.assert_array_equal(lib.forward(floats(1)), [0])
    np.testing.assert_array_equal(lib.forward(np.array([1, 4, 9], np.float32)), [3, 5, 0])


def test_several_outputs_come_in_the_prototype_s_order(lib: Any) -> None:
    x = floats(1000)
    s, c = lib.sines(x)
    np.testing.assert_allclose(s, np.sin(x), atol=1e-6)
    np.testing.assert_allclose(c, np.cos(x), atol=1e-6)


def test_fixed_dims_are_vectors_and_matrices(lib: Any) -> None:
    rotation, p = floats(3, 3), floats(5000, 3, seed=2)
    np.testing.assert_allclose(lib.turn(rotation, p), p @ rotation.T, rtol=2e-5, atol=1e-6)


def test_a_dimension_of_ranges_alone_is_a_keyword(lib: Any, x64: None) -> None:
    x = floats(5)
    np.testing.assert_allclose(lib.times(x, steps=1000), x * 1000, rtol=1e-4)
    np.testing.assert_array_equal(lib.times(x, steps=0), np.zeros(5))
    np.testing.assert_array_equal(lib.ramp(1.0, 0.5, n=4), [1, 1.5, 2, 2.5])
    with pytest.raises(TypeError, match="times: dimension 'steps' is missing"):
        lib.times(x)


def test_scratch_is_each_thread_s_own(lib: Any) -> None:
    x = floats(200_000)
    np.testing.assert_allclose(lib.squares(x), x * 6, rtol=1e-6)


def test_serial_points_come_in_order(lib: Any) -> None:
    x = np.zeros((3, 5000), np.int32)
    np.testing.assert_array_equal(lib.counted(x), np.tile(np.arange(5000), (3, 1)))


def test_inout_is_brought_before_any_point(lib: Any) -> None:
    x = floats(300_000)
    expected = x + np.float32(2) * np.arange(1, 300_001, dtype=np.float32)
    kept = jnp.asarray(x)
    np.testing.assert_allclose(jax.jit(lib.grow)(2.0, kept), expected, rtol=1e-6)
    np.testing.assert_array_equal(kept, x)
    donated = jax.jit(lib.grow, donate_argnums=1)(2.0, jnp.asarray(x))
    np.testing.assert_allclose(donated, expected, rtol=1e-6)
    rows = lib.grow(np.ones((4, 1), np.float32)[:, 0], x[:5])  # x is shared by the rows
    np.testing.assert_allclose(rows, np.tile(x[:5] + np.arange(1, 6), (4, 1)), rtol=1e-6)


def test_static_values_effects_and_overloads(x64: None) -> None:
    lib = jaxc.compile(
        """
        #include <complex.h>
        #pragma jaxc grid(i < n) static(mode, k) effect
        void f(int i, const char *mode, int k, int n, const float x[n], _Complex double z,
               float y[n]) {
          static int calls; /* effects come in order, in one thread */
          y[i] = mode[0] == '+' ? x[i] + (float)k : (float)creal(z * I);
          if (mode[0] == 'c') y[i] = (float)calls;
          calls++;
        }
        #pragma jaxc grid(i < n) overload(half)
        void half_f(int i, int n, const float x[n], float y[n]) { y[i] = x[i] / 2; }
        #pragma jaxc grid(i < n) overload(half)
        void half_i(int i, int n, const int x[n], int y[n]) { y[i] = x[i] / 2; }
        """
    )
    x = floats(5000)
    np.testing.assert_array_equal(lib.f("+", 3, x, 0j), x + np.float32(3))
    np.testing.assert_array_equal(lib.f("-", 0, x, 1 + 2j), np.full(5000, -2))
    np.testing.assert_array_equal(lib.f("c", 0, x, 0j), np.arange(10_000, 15_000))
    np.testing.assert_array_equal(lib.half(x), x / 2)
    np.testing.assert_array_equal(lib.half(np.arange(9, dtype=np.int32)), np.arange(9) // 2)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_compiler_makes_the_same_grids(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    lib = jaxc.compile(SOURCE, name=f"by_{compiler}", compiler=compiler)
    x, y = floats(300), floats(400)
    np.testing.assert_array_equal(lib.outer(x, y), np.outer(x, y))
    np.testing.assert_array_equal(lib.forward(x)[:-1], np.diff(x))
    counts = lib.histogram(np.arange(90_000, dtype=np.int32) % 7, k=7)
    np.testing.assert_array_equal(counts, np.bincount(np.arange(90_000) % 7))


# ---- accumulation ----


@pytest.mark.parametrize("rows", [(), (2,), (500,)])
def test_atomics_of_many_threads_lose_nothing(
    lib: Any, x64: None, rows: tuple[int, ...]
) -> None:
    count = 400_000 if len(rows) == 0 else 3000
    x = np.random.default_rng(3).integers(-50, 50, (*rows, count)).astype(np.int32)
    total, low = jax.jit(lib.sums)(x)
    np.testing.assert_array_equal(total, x.sum(-1, dtype=np.int64))
    np.testing.assert_array_equal(low, np.minimum(x.min(-1), 0))
    counts = jax.jit(lambda x: lib.histogram(x, k=100))(x + 50)
    flat = (x + 50).reshape(-1, count)
    expected = np.stack([np.bincount(row, minlength=100) for row in flat])
    np.testing.assert_array_equal(np.reshape(counts, (-1, 100)), expected)


def test_scattered_sums_equal_numpy_s(lib: Any) -> None:
    random = np.random.default_rng(4)
    at = random.integers(0, 1000, 200_000).astype(np.int32)
    v = random.integers(-8, 8, 200_000).astype(np.float32)  # sums are exact
    y = random.integers(-8, 8, 1000).astype(np.float32)
    expected = y.copy()
    np.add.at(expected, at, v)
    np.testing.assert_array_equal(lib.scatter(at, v, y), expected)


@pytest.mark.parametrize(
    ("ctype", "dtype"),
    [("float", "f4"), ("double", "f8"), ("signed char", "i1"), ("unsigned char", "u1"),
     ("short", "i2"), ("unsigned short", "u2"), ("int", "i4"), ("unsigned", "u4"),
     ("long long", "i8"), ("unsigned long", "u8")],
)  # fmt: skip
def test_every_type_has_the_four_operations(x64: None, ctype: str, dtype: str) -> None:
    kernels = jaxc.compile(
        f"""
        #include <jaxc/grid.h>
        #pragma jaxc grid(i < n) inout(y)
        void all(int i, int n, const {ctype} x[n], {ctype} y[4], {ctype} old[n]) {{
          old[i] = jaxc_atomic_add(&y[0], x[i]);
          jaxc_atomic_sub(&y[1], x[i]);
          jaxc_atomic_min(&y[2], x[i]);
          jaxc_atomic_max(&y[3], x[i]);
        }}
        """
    )
    x = np.arange(1, 60_001).astype(dtype)
    if dtype == "f4":
        x = (x % 16).astype(dtype)
    y = np.array([0, 100, 50, 50], dtype)
    got, old = kernels.all(x, y)
    with np.errstate(over="ignore"):
        total = np.add.reduce(x, dtype=dtype)
        expected = [total, np.asarray(100, dtype) - total, min(x.min(), 50), max(x.max(), 50)]
    np.testing.assert_array_equal(got, np.array(expected, dtype))
    if dtype in ("f8", "i8", "u8", "i4", "u4"):  # partial sums, each seen by one point
        assert len(set(np.asarray(old).tolist())) == x.size


def test_a_number_wins_over_nan_in_min_and_max() -> None:
    kernels = jaxc.compile(
        """
        #include <jaxc/grid.h>
        #pragma jaxc grid(i < n) inout(y)
        void extremes(int i, int n, const float x[n], float y[2]) {
          jaxc_atomic_min(&y[0], x[i]);
          jaxc_atomic_max(&y[1], x[i]);
        }
        """
    )
    nan = np.nan
    x = np.array([nan, 3, nan, -2, nan], np.float32)
    np.testing.assert_array_equal(kernels.extremes(x, np.float32([nan, nan])), [-2, 3])
    np.testing.assert_array_equal(kernels.extremes(x[:1], np.float32([1, 2])), [1, 2])
    np.testing.assert_array_equal(kernels.extremes(x[:1], np.float32([nan, nan])), [nan, nan])


def test_zero_clears_for_functions_without_a_grid_too(lib: Any) -> None:
    x = floats(40, 500)
    np.testing.assert_array_equal(jax.jit(lib.sparse)(x), np.maximum(x, 0))
    dirty, _ = host.call_guarded(lib.sparse, [x], poison=0xFF)
    np.testing.assert_array_equal(dirty[0], np.maximum(x, 0))


@pytest.mark.parametrize("threads", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("rows", [(), (3,), (700,)])
def test_zero_clears_before_the_first_point_in_any_number_of_threads(
    lib: Any, rows: tuple[int, ...], threads: int | None
) -> None:
    x = np.ones((*rows, 9001), np.int32)
    (bins,), _ = host.call_guarded(
        lib.histogram, [x], (("k", 3),), poison=0xFF, runtime=host.Runtime(threads=threads)
    )
    np.testing.assert_array_equal(bins, np.broadcast_to(np.int32([0, 9001, 0]), (*rows, 3)))


# ---- under JAX's transformations ----


def test_vmap_is_one_call_and_copies_nothing_unmapped(lib: Any) -> None:
    x, y = floats(6, 5), floats(7)
    np.testing.assert_array_equal(
        jax.vmap(lib.outer, (0, None))(x, y), x[:, :, None] * y[None, None, :]
    )
    both = jax.vmap(jax.vmap(lib.outer, (None, 0)), (0, None))(x, floats(3, 7))
    assert both.shape == (6, 3, 5, 7)
    text = jax.jit(jax.vmap(lib.outer, (0, None))).lower(x, y).as_text()
    assert text.count("stablehlo.custom_call") == 1
    assert jax.vmap(lib.outer, (0, None))(np.zeros((0, 5), np.float32), y).shape == (0, 5, 7)


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 255, 256, 1000])
def test_rows_and_points_divide_at_every_number_of_rows(lib: Any, rows: int) -> None:
    x, y = floats(rows, 13), floats(rows, 77, seed=5)
    expected = x[:, :, None] * y[:, None, :]
    np.testing.assert_array_equal(jax.jit(lib.outer)(x, y), expected)
    np.testing.assert_array_equal(jax.jit(lib.outer)(x, y[0]), x[:, :, None] * y[0])


def test_derivatives_are_grids_with_pragmas_of_their_own(lib: Any) -> None:
    x = floats(5000)
    gx, ga = jax.grad(lambda x, a: (lib.scaled(x, a) * 3).sum(), (0, 1))(x, 2.0)
    np.testing.assert_allclose(gx, np.full(5000, 6), rtol=1e-6)
    np.testing.assert_allclose(ga, 3 * x.sum(), rtol=1e-3, atol=1e-3)
    _, moved = jax.jvp(lib.scaled, (x, jnp.float32(2)), (x, jnp.float32(1)))
    np.testing.assert_allclose(moved, 3 * x, rtol=1e-6)
    np.testing.assert_array_equal(jax.grad(lib.total)(x), np.ones(5000))
    rows = jax.vmap(jax.grad(lambda x, a: lib.scaled(x, a).sum(), 1), (0, None))(
        x.reshape(50, 100), 2.0
    )
    np.testing.assert_allclose(rows, x.reshape(50, 100).sum(1), rtol=1e-3, atol=1e-3)


def test_scan_and_checkpoint(lib: Any) -> None:
    x = floats(64)

    def step(carry: Any, _: Any) -> Any:
        return lib.scaled(carry, 0.5), None

    looped, _ = jax.lax.scan(step, x, None, length=3)
    np.testing.assert_allclose(looped, x / 8, rtol=1e-6)
    g = jax.grad(jax.checkpoint(lambda x: lib.scaled(x, 3.0).sum()))(x)
    np.testing.assert_array_equal(g, np.full(64, 3))


def test_a_program_with_a_grid_is_exported_at_sizes_that_are_not_known(lib: Any) -> None:
    pytest.importorskip("flatbuffers", reason="jax.export serializes by flatbuffers")
    n, rows = jax.export.symbolic_shape("n, rows")
    spec = jax.ShapeDtypeStruct((rows, n), np.float32)
    saved = jaxc.export(jax.jit(lib.forward), spec).serialize()
    x = floats(3, 50)
    np.testing.assert_array_equal(jaxc.deserialize(saved).call(x), lib.forward(x))


_DEVICES = r"""
import jax, jaxc, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
lib = jaxc.compile('''
#include <jaxc/grid.h>
#pragma jaxc grid(i < n - 1) zero(y, total)
void f(int i, int n, const float x[n], float y[n], float *total) {
  y[i] = x[i + 1] - x[i];
  jaxc_atomic_add(total, y[i]);
}
''')
assert len(jax.devices()) == 4
mesh = Mesh(np.array(jax.devices()), ("d",))
x = np.arange(8 * 9, dtype=np.float32).reshape(8, 9) ** 2
placed = jax.device_put(x, NamedSharding(mesh, P("d")))
compiled = jax.jit(lib.f).lower(placed).compile()
assert "all-" not in compiled.as_text()
y, total = compiled(placed)
assert y.sharding.spec == P("d"), y.sharding
np.testing.assert_array_equal(y[:, :-1], np.diff(x))
np.testing.assert_array_equal(y[:, -1], 0)
np.testing.assert_array_equal(total, x[:, -1] - x[:, 0])
print("right")
"""


def test_a_call_is_divided_among_devices_by_its_rows() -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    done = subprocess.run(
        [sys.executable, "-c", _DEVICES], capture_output=True, text=True, timeout=300,
        check=False, env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.stdout == "right\n", done.stderr


def as_ufunc(function: Any, types: str, statics: tuple[Any, ...] = ()) -> Any:
    """The NumPy form of a function, made as the package makes it."""
    description = function.description
    operands = description.with_role(*OPERANDS)
    results = description.with_role(*RESULTS)
    numbers = tuple(np.dtype(t).num for t in types.split())
    member = (function.capsule, numbers, (), statics)
    counts = (len(operands), len(results))
    signature = re.sub(r"[^\w(),>-]", "", description.signature)
    return _jaxc.make_ufunc((member,), counts, description.name, "", signature)


def test_the_numpy_form_calls_all_points(lib: Any) -> None:
    outer = as_ufunc(lib.outer, "f4 f4 f4")
    x, y = floats(6, 5), floats(7)
    np.testing.assert_array_equal(outer(x, y), x[:, :, None] * y)
    np.testing.assert_array_equal(outer(x.T[::2].T, y[::-1]), x[:, ::2, None] * y[::-1])
    assert outer(x[:, :0], y).shape == (6, 0, 7)
    total = as_ufunc(lib.total, "f4 f4")
    np.testing.assert_array_equal(total(np.ones((3, 40), np.float32)), [40, 40, 40])
    forward = as_ufunc(lib.forward, "f4 f4")
    out = np.full((3, 9), np.nan, np.float32)[:, ::2]
    forward(floats(3, 5), out=out)
    np.testing.assert_array_equal(out[:, -1], 0)
    grow = as_ufunc(lib.grow, "f4 f4 f4")
    np.testing.assert_array_equal(grow(np.float32(2), floats(4) * 0), [2, 4, 6, 8])


def test_the_numpy_form_refuses_a_range_that_has_no_value(lib: Any) -> None:
    split = as_ufunc(lib.split, "f4 f4 f4")
    np.testing.assert_array_equal(split(np.ones(3, "f4"), np.ones(1, "f4")), [2, 2, 2])
    with pytest.raises(
        RuntimeError, match=r"split: the range of index 'i' \(i < m / n\) has no"
    ):
        split(np.ones(3, "f4"), np.ones(0, "f4"))


# ---- errors of a call ----


def test_a_range_beyond_the_index_s_type_is_an_error(lib: Any) -> None:
    x = floats(63)
    np.testing.assert_array_equal(lib.tiny(x), np.repeat(x, 2))
    text = (
        "tiny: the range of index 'i' is 2 * n = 128, above the largest value of its C type, "
        "127 (C: signed char i)"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        lib.tiny(floats(64))


def test_a_range_that_divides_by_zero_is_an_error(lib: Any) -> None:
    text = (
        "split: the range of index 'i' (i < m / n) divides by zero for n = 0, m = 4 (C: int i)"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        lib.split(floats(4), floats(0))


def test_the_handler_checks_ranges_itself(lib: Any) -> None:
    def call(function: Any, operands: list[Any], results: list[Any]) -> str:
        with pytest.raises(host.HostError) as caught:
            host.call(function.handlers["cpu"], *operands, results=results)
        return str(caught.value)

    spec = jax.ShapeDtypeStruct
    text = call(lib.tiny, [floats(64)], [spec((128,), np.float32)])
    assert (
        "tiny: the range of index 'i' is 2 * n = 128, above the largest value of its C type "
        "(C: signed char i), 127"
    ) in text
    text = call(lib.split, [floats(4), floats(0)], [spec((4,), np.float32)])
    assert "split: the range of index 'i' (i < m / n) has no value for these dimensions" in text


def test_check_finds_what_the_points_do_not_write(lib: Any) -> None:
    text = (
        r"unwritten: every result is written: result 'y' differs: .*; the points of the grid "
        r"\(i < n\) do not write all of it, or read it before: '#pragma jaxc zero\(y\)' clears "
        "it first"
    )
    with pytest.raises(AssertionError, match=text):
        jaxc.check(lib.unwritten, floats(5))


def test_check_passes_grids_and_their_derivatives(lib: Any) -> None:
    jaxc.check(lib.scaled, floats(50), 1.5)
    jaxc.check(lib.forward, floats(50))
    jaxc.check(lib.total, floats(3000))
    jaxc.check(lib.outer, floats(5), floats(7))
