"""Calls: values, dtypes, shapes, names, and the text of every refusal."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

import jaxc

SOURCE = r"""
#include <complex.h>
#include <jaxc/types.h>
#include <stdint.h>
#include <string.h>

/* Adds a to each element. */
void add(int n, const float x[n], float a, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] + a;
}
void fir(int n, int k, const float x[n], const float w[k], float y[n - k + 1]) {
  for (int i = 0; i < n - k + 1; i++) {
    y[i] = 0;
    for (int j = 0; j < k; j++) y[i] += x[i + j] * w[k - 1 - j];
  }
}
void dot(int n, const float x[n], const float w[n], float *r) {
  *r = 0;
  for (int i = 0; i < n; i++) *r += x[i] * w[i];
}
void rotate(const float R[3][3], const float p[3], float q[3]) {
  for (int i = 0; i < 3; i++) {
    q[i] = 0;
    for (int j = 0; j < 3; j++) q[i] += R[i][j] * p[j];
  }
}
void line(float a, float b, int n, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = a + (b - a) * (float)i / (float)(n - 1);
}
void halve(int n, const float x[2 * n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[2 * i];
}
float cube(float x) { return x * x * x; }
float product(float x, float y) { return x * y; }
float sum3(float x, float y, float z) { return x + 10 * y + 100 * z; }
float answer(void) { return 42; }
void stats(int n, const float x[n], float *mean, float *largest) {
  *mean = 0;
  *largest = x[0];
  for (int i = 0; i < n; i++) {
    *mean += x[i] / (float)n;
    if (x[i] > *largest) *largest = x[i];
  }
}
#pragma jaxc scalar(twice)
double beside(double x, double *twice) { *twice = 2 * x; return x + 1; }

#pragma jaxc static(mode)
int status(int n, const float x[n], int mode, float y[n]) {
  memcpy(y, x, (size_t)n * sizeof *y);
  return x[0] < 0 ? mode : 0;
}
const char *text(int n, const float x[n], float y[n]) {
  memcpy(y, x, (size_t)n * sizeof *y);
  return x[0] < 0 ? "x is below zero" : NULL;
}
#pragma jaxc static(word)
int length(int n, const float x[n], const char *word, float *r) {
  *r = (float)strlen(word) + x[0];
  return 0;
}
#pragma jaxc static(b, i8, u16, i64, u64, f, d, z, c)
void statics(_Bool b, int8_t i8, uint16_t u16, int64_t i64, uint64_t u64, float f, double d,
             double complex z, float complex c, float y[9]) {
  y[0] = b; y[1] = i8; y[2] = u16; y[3] = (float)i64; y[4] = (float)(u64 >> 60);
  y[5] = f; y[6] = (float)d; y[7] = (float)cimag(z); y[8] = crealf(c);
}
#pragma jaxc inout(x)
void twice(int n, float x[n]) {
  for (int i = 0; i < n; i++) x[i] *= 2;
}
#pragma jaxc scratch(w)
int scratch(int n, const float x[n], double w[n][3], float y[n]) {
  if ((uintptr_t)w % 64) return 1;
  memset(w, 0x7f, sizeof(double) * 3 * (size_t)n);
  memcpy(y, x, (size_t)n * sizeof *y);
  return 0;
}
#pragma jaxc serial
void serial(int n, const float x[n], float y[n]) {
  static float row;
  for (int i = 0; i < n; i++) y[i] = x[i] + row;
  row++;
}
#pragma jaxc overload(norm)
float norm_f(int n, const float x[n]) { return n > 0 ? x[0] : 1; }
#pragma jaxc overload(norm)
double norm_d(int n, const double x[n]) { return n > 0 ? -x[0] : 2; }

uint8_t byte(uint8_t x) { return (uint8_t)(x + 1); }
void needs_double(int n, const double x[n], double y[n]) { memcpy(y, x, 8 * (size_t)n); }
void small(int8_t n, const float x[n], float y[n]) { memcpy(y, x, 4 * (size_t)n); }

#define ROUND_TRIP(name, type) \
  void trip_##name(int n, const type x[n], type y[n]) { memcpy(y, x, sizeof(type) * (size_t)n); } \
  type one_##name(type x) { return x; }
ROUND_TRIP(bool, _Bool)
ROUND_TRIP(int8, int8_t) ROUND_TRIP(int16, int16_t) ROUND_TRIP(int32, int32_t)
ROUND_TRIP(int64, int64_t) ROUND_TRIP(uint8, uint8_t) ROUND_TRIP(uint16, uint16_t)
ROUND_TRIP(uint32, uint32_t) ROUND_TRIP(uint64, uint64_t) ROUND_TRIP(float16, _Float16)
ROUND_TRIP(float32, float) ROUND_TRIP(float64, double) ROUND_TRIP(complex64, float complex)
ROUND_TRIP(complex128, double complex) ROUND_TRIP(bfloat16, jaxc_bf16)
ROUND_TRIP(float8_e4m3fn, jaxc_f8e4m3fn) ROUND_TRIP(float8_e5m2, jaxc_f8e5m2)
ROUND_TRIP(long, long) ROUND_TRIP(longlong, long long) ROUND_TRIP(char, char)
"""


@pytest.fixture(scope="module")
def lib() -> jaxc.Library:
    return jaxc.compile(SOURCE, name="calls")


def f32(*shape: int) -> Any:
    return jnp.arange(1, 1 + np.prod(shape), dtype=jnp.float32).reshape(shape)


# ---- values ----


def test_one_row(lib: jaxc.Library) -> None:
    np.testing.assert_array_equal(lib.add(f32(3), 10.0), [11, 12, 13])


def test_leading_axes_broadcast_like_numpy(lib: jaxc.Library) -> None:
    x, w = f32(4, 1, 3), f32(2, 3)
    np.testing.assert_allclose(lib.dot(x, w), (x * w).sum(-1))
    np.testing.assert_allclose(lib.dot(f32(3), w), (f32(3) * w).sum(-1))


def test_computed_sizes(lib: jaxc.Library) -> None:
    np.testing.assert_allclose(lib.fir(f32(5), f32(2)), np.convolve(f32(5), f32(2), "valid"))
    np.testing.assert_array_equal(lib.halve(f32(6)), [1, 3, 5])


def test_fixed_dims(lib: jaxc.Library) -> None:
    R, p = f32(3, 3), f32(5, 3)  # noqa: N806
    np.testing.assert_allclose(lib.rotate(R, p), p @ R.T)


def test_a_dimension_of_outputs_is_a_keyword(lib: jaxc.Library) -> None:
    np.testing.assert_allclose(lib.line(0.0, 1.0, n=5), np.linspace(0, 1, 5))
    assert lib.line(jnp.zeros(2), 1.0, n=3).shape == (2, 3)
    assert jax.jit(lambda a: lib.line(a, 1.0, n=4))(0.0).shape == (4,)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1000,), (3, 4), (0,), (2, 0, 3)])
def test_value_functions_are_elementwise(lib: jaxc.Library, shape: tuple[int, ...]) -> None:
    x, y = f32(*shape), f32(*shape) + 1
    np.testing.assert_allclose(lib.cube(x), x**3)
    np.testing.assert_allclose(lib.product(x, y), x * y)
    np.testing.assert_allclose(lib.product(x, 2.0), x * 2)
    np.testing.assert_allclose(lib.product(2.0, y), 2 * y)
    np.testing.assert_allclose(lib.sum3(x, 2.0, y), x + 20 + 100 * y)
    np.testing.assert_allclose(lib.sum3(x, y, x), x + 10 * y + 100 * x)


def test_value_functions_broadcast_strided(lib: jaxc.Library) -> None:
    x, y = f32(4, 1), f32(1, 5)
    np.testing.assert_allclose(lib.product(x, y), x * y)
    np.testing.assert_allclose(lib.product(f32(3), f32(2, 1)), f32(3) * f32(2, 1))


def test_no_arguments(lib: jaxc.Library) -> None:
    assert lib.answer() == 42
    assert jax.jit(lib.answer)() == 42


def test_several_outputs_are_a_tuple_in_order(lib: jaxc.Library, x64: None) -> None:
    mean, largest = lib.stats(f32(2, 3))
    np.testing.assert_allclose(mean, [2, 5])
    np.testing.assert_allclose(largest, [3, 6])
    value, double = lib.beside(3.0)
    assert (value, double) == (4, 6)


def test_inout_leaves_the_caller_s_array(lib: jaxc.Library) -> None:
    x = f32(3)
    np.testing.assert_array_equal(lib.twice(x), [2, 4, 6])
    np.testing.assert_array_equal(x, [1, 2, 3])


def test_inout_used_after_the_call_keeps_its_value(lib: jaxc.Library) -> None:
    y, x = jax.jit(lambda x: (lib.twice(x + 1), x + 1))(f32(3))
    np.testing.assert_array_equal(y, [4, 6, 8])
    np.testing.assert_array_equal(x, [2, 3, 4])


def test_a_donated_inout_is_changed_in_place(lib: jaxc.Library) -> None:
    x = f32(1024)
    before = x.unsafe_buffer_pointer()
    y = jax.jit(lib.twice, donate_argnums=0)(x)
    assert y.unsafe_buffer_pointer() == before
    assert x.is_deleted()
    np.testing.assert_array_equal(y, 2 * f32(1024))


def test_scratch_is_invisible_and_aligned(lib: jaxc.Library) -> None:
    for n in (0, 1, 5, 1000):
        assert lib.scratch(f32(n)).shape == (n,)


def test_scratch_leaves_constants_of_a_scan_alone(lib: jaxc.Library, x64: None) -> None:
    constant = jnp.arange(8.0)

    def step(carry: Any, x: Any) -> Any:
        return carry + constant.sum(), lib.scratch(x)

    carry, ys = jax.lax.scan(step, 0.0, f32(3, 5))
    assert carry == 3 * 28
    np.testing.assert_array_equal(ys, f32(3, 5))


def test_serial_rows_come_in_order(lib: jaxc.Library) -> None:
    first = lib.serial(jnp.zeros((3, 2)))
    np.testing.assert_array_equal(first[:, 0] - first[0, 0], [0, 1, 2])


def test_overloads_choose_by_dtype(lib: jaxc.Library, x64: None) -> None:
    assert lib.norm(f32(3)) == 1
    assert lib.norm(jnp.array([3.0])) == -3
    assert lib.norm.signature == "(n)->()"
    chosen = jaxc.overload(lib.norm_d, lib.norm_f, name="norm2")
    assert jax.jit(chosen)(f32(3)) == 1


# ---- dtypes ----


@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
    ],
)
def test_every_dtype_arrives_and_returns(lib: jaxc.Library, name: str, x64: None) -> None:
    x = jnp.array([0, 1, 0, 1, 1]).astype(name)
    for y in (lib[f"trip_{name}"](x), lib[f"one_{name}"](x)):
        assert y.dtype == x.dtype
        assert np.asarray(y).tobytes() == np.asarray(x).tobytes()


def test_plain_c_integers_have_the_compiler_s_size(lib: jaxc.Library, x64: None) -> None:
    assert lib.trip_long(jnp.arange(3)).dtype == np.dtype("long")
    assert lib.trip_longlong(jnp.arange(3)).dtype == np.int64
    assert lib.trip_char(jnp.zeros(3, np.dtype("byte"))).dtype == np.int8


def test_python_scalars_convert_and_arrays_do_not(lib: jaxc.Library) -> None:
    assert lib.add(f32(1), 2)[0] == 3
    assert lib.add(f32(1), True)[0] == 2
    assert jax.jit(lib.add)(f32(1), 2)[0] == 3
    with pytest.raises(
        TypeError, match=r"^add: argument 'a' has dtype int32, expected float32 "
    ):
        lib.add(f32(1), jnp.int32(2))
    with pytest.raises(
        TypeError, match=r"^add: argument 'a' is 1j, expected float32 \(C: float"
    ):
        lib.add(f32(1), 1j)


@pytest.mark.parametrize("wrong", [np.ones(3), np.ones(3, np.float16), np.ones(3, np.int32)])
def test_numpy_arrays_of_another_dtype_are_refused(lib: jaxc.Library, wrong: Any) -> None:
    text = rf"add: argument 'x' has dtype {wrong.dtype}, expected float32 \(C: const float x\[n\]\)"
    with pytest.raises(TypeError, match=text):
        lib.add(wrong, 1.0)


def test_traced_arrays_of_another_dtype_are_refused(lib: jaxc.Library) -> None:
    with pytest.raises(TypeError, match="add: argument 'x' has dtype int32, expected float32"):
        jax.jit(lib.add)(jnp.arange(3), 1.0)


def test_integers_do_not_wrap(lib: jaxc.Library) -> None:
    assert lib.byte(255) == 0
    for wrong in (256, -1):
        text = rf"byte: argument 'x' is {wrong}, outside the range of uint8 \(0 to 255\)"
        with pytest.raises(OverflowError, match=text):
            lib.byte(wrong)
    with pytest.raises(TypeError, match=r"byte: argument 'x' is 1.0, expected uint8"):
        lib.byte(1.0)


def test_weakly_typed_integers_do_not_wrap(lib: jaxc.Library, x64: None) -> None:
    weak = jnp.asarray(2**33 + 1)
    assert weak.weak_type
    for _ in range(2):
        assert lib.byte(jnp.asarray(7)) == 8
        with pytest.raises(OverflowError, match="outside the range of uint8"):
            lib.byte(weak)


def test_numbers_too_large_for_float_are_refused(lib: jaxc.Library) -> None:
    assert np.isinf(lib.cube(np.inf))
    for _ in range(2):
        with pytest.raises(
            OverflowError, match=r"cube: argument 'x' is 1e\+300, too large for float32"
        ):
            lib.cube(1e300)


def test_double_needs_x64_and_says_so(lib: jaxc.Library) -> None:
    text = (
        r"needs_double: 'x' is float64 \(C: const double x\[n\]\), and JAX has 64-bit types only "
        r"with jax.config.update\('jax_enable_x64', True\)"
    )
    with pytest.raises(TypeError, match=text):
        lib.needs_double(np.ones(3))
    with pytest.raises(TypeError, match=text):
        lib.needs_double(jnp.ones(3))


# ---- static values ----


def test_statics_of_every_type(lib: jaxc.Library) -> None:
    y = lib.statics(True, -7, 65535, 2**40, 2**63, 0.5, 0.25, 1 + 2j, 3 - 1j)
    np.testing.assert_array_equal(y, [1, -7, 65535, 2.0**40, 8, 0.5, 0.25, 2, 3])


def test_static_strings_and_empty_ones(lib: jaxc.Library) -> None:
    assert lib.length(jnp.zeros(1), "hello") == 5
    assert lib.length(jnp.zeros(1), word="") == 0
    assert lib.length(jnp.zeros(1), "ü") == 2
    assert lib.length(jnp.zeros(1), "x" * 9000) == 9000


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (
            1.5,
            TypeError,
            r"status: static argument 'mode' is 1.5, expected int32 \(C: int mode\)",
        ),
        ("a", TypeError, "static argument 'mode' is 'a', expected int32"),
        (None, TypeError, "static argument 'mode' is None, expected int32"),
        (
            2**31,
            OverflowError,
            "static argument 'mode' is 2147483648, outside the range of int32",
        ),
    ],
)
def test_static_values_are_checked(
    lib: jaxc.Library, value: Any, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        lib.status(f32(2), value)


def test_static_values_cannot_be_traced(lib: jaxc.Library) -> None:
    text = r"status: static argument 'mode' must be a Python value, got a traced int32\[\]; "
    text += "under jit give static_argnames='mode' or bind it with functools.partial"
    with pytest.raises(TypeError, match=text):
        jax.jit(lib.status)(f32(2), 3)
    with pytest.raises(TypeError, match="'n' is static and must be a Python value"):
        jax.jit(lambda n: lib.line(0.0, 1.0, n=n))(3)


def test_strings_are_checked(lib: jaxc.Library) -> None:
    with pytest.raises(TypeError, match="static argument 'word' must be a str, got 3"):
        lib.length(f32(1), 3)
    with pytest.raises(ValueError, match="has a NUL character"):
        lib.length(f32(1), "a\0b")


# ---- names and counts ----


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: f.fir(f32(3)), r"fir: argument 'w' is missing \(C: const float w\[k\]\)"),
        (lambda f: f.fir(f32(3), f32(1), 1), r"fir: takes 2 arguments \(x, w\), got 3"),
        (lambda f: f.fir(f32(3), z=1), r"fir: has no argument 'z'; it takes w, x"),
        (lambda f: f.fir(f32(3), f32(1), x=1), "fir: argument 'x' is given by position and by name"),
        (lambda f: f.fir(f32(3), f32(1), n=3), "fir: dimension 'n' is read from the arrays' shapes"),
        (lambda f: f.line(0.0, 1.0), "line: dimension 'n' is missing: no array has it"),
        (lambda f: f.line(0.0, 1.0, n=2.0), "line: 'n' must be an int, got 2.0"),
        (lambda f: f.line(0.0, 1.0, n=True), "line: 'n' must be an int, got True"),
        (lambda f: f.add([1.0], 1.0), r"add: argument 'x' is a list, expected an array"),
        (lambda f: f.add(None, 1.0), r"add: argument 'x' is a NoneType, expected an array"),
        (lambda f: f.norm(jnp.arange(3)), r"norm: no overload for \(int32\); there are:"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_type_errors(lib: jaxc.Library, call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call(lib)


def test_names_that_python_reserves(lib: jaxc.Library) -> None:
    odd = jaxc.compile(
        "float f(float x, float lambda, float self) { return x * lambda - self; }"
    )
    assert odd.f(2.0, 3.0, 1.0) == 5
    assert odd.f(2.0, lambda_=3.0, self=1.0) == 5
    assert odd.f(2.0, **{"lambda": 3.0}, self=1.0) == 5
    assert str(inspect.signature(odd.f)) == "(x, lambda_, self)"


def test_numpy_scalars_are_numbers(lib: jaxc.Library) -> None:
    assert lib.add(f32(1), np.float64(2))[0] == 3
    assert lib.add(f32(1), np.sqrt(4.0))[0] == 3
    assert lib.add(f32(1), np.int64(2))[0] == 3
    with pytest.raises(TypeError, match=r"argument 'a' is .*expected float32"):
        lib.add(f32(1), np.complex64(2))
    with pytest.raises(OverflowError, match="outside the range of uint8"):
        lib.byte(np.int32(256))


def test_arguments_by_name(lib: jaxc.Library) -> None:
    np.testing.assert_array_equal(lib.add(a=1.0, x=f32(2)), [2, 3])
    np.testing.assert_array_equal(jax.jit(lib.add)(f32(2), a=1.0), [2, 3])


# ---- shapes ----


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda f: f.dot(f32(4), f32(5)),
         r"^dot: dimension n is 4 in 'x' \(axis -1\) but 5 in 'w' \(axis -1\)"),
        (lambda f: f.dot(f32(), f32(5)),
         r"dot: argument 'x' has shape \(\), expected at least 1 axis: \(n\) \(C: const float x\[n\]\)"),
        (lambda f: f.rotate(f32(3, 4), f32(3)),
         r"rotate: argument 'R' has shape \(3, 4\), expected size 3 on axis -1 \(C: const float R"),
        (lambda f: f.rotate(f32(3), f32(3)), r"expected at least 2 axes: \(3, 3\)"),
        (lambda f: f.fir(f32(2), f32(5)),
         r"fir: the size n - k \+ 1 of 'y' is -2 for n = 2, k = 5 \(C: float y\[n - k \+ 1\]\)"),
        (lambda f: f.halve(f32(5)),
         r"halve: argument 'x' has size 5 on axis -1, and no n makes 2 \* n = 5"),
        (lambda f: f.dot(f32(2, 3), f32(4, 3)),
         r"dot: leading axes do not broadcast: axis -1 of them has size 2 in 'x' and 4 in 'w', whose "
         r"shape is \(4, 3\)"),
        (lambda f: f.line(0.0, 1.0, n=-1), r"line: dimension n is -1, outside the range of its C type \(0 to"),
        (lambda f: f.line(0.0, 1.0, n=2**31), r"line: dimension n is 2147483648, outside the range"),
        (lambda f: f.small(f32(128)), r"small: dimension n is 128, outside the range of its C type"),
    ],
)  # fmt: skip
def test_wrong_shapes_are_value_errors(lib: jaxc.Library, call: Any, text: str) -> None:
    for run in (call, jax.jit(call, static_argnums=0)):
        with pytest.raises(ValueError, match=text):
            run(lib)


# ---- errors from the kernel ----


def test_a_status_raises_with_name_and_status(lib: jaxc.Library) -> None:
    bad, good = -f32(2), f32(2)
    text = r"status: returned status 3; 0 is success"
    for function in (lib.status, jax.jit(lib.status, static_argnums=1)):
        for _ in range(2):  # also when the program comes from the cache
            with pytest.raises(JaxRuntimeError, match=text):
                jax.block_until_ready(function(bad, 3))
        np.testing.assert_array_equal(function(good, 3), good)


def test_the_error_is_the_same_at_once_and_again() -> None:
    lib = jaxc.compile(
        "int f(int n, const float x[n], float y[n]) { y[0] = 1; return x[0] < 0; }"
    )
    for _ in range(3):  # JAX itself would raise ValueError from the second call on
        lib.f(f32(2))
        with pytest.raises(JaxRuntimeError, match="f: returned status 1"):
            jax.block_until_ready(lib.f(-f32(2)))


def test_a_status_names_the_first_bad_row(lib: jaxc.Library) -> None:
    x = jnp.array([[1.0], [-1.0], [-1.0]])
    with pytest.raises(
        JaxRuntimeError, match=r"status: returned status 7 \(batch row 1 of 3\)"
    ):
        jax.block_until_ready(lib.status(x, 7))


def test_a_status_in_the_middle_of_a_scan(lib: jaxc.Library) -> None:
    def run(xs: Any) -> Any:
        return jax.lax.scan(lambda c, x: (c + 1, lib.status(x, 5)), 0, xs)

    good = f32(6, 1)
    bad = good.at[3].set(-1)
    with pytest.raises(JaxRuntimeError, match="status: returned status 5"):
        jax.block_until_ready(run(bad))
    np.testing.assert_array_equal(run(good)[1], good)


def test_a_text_is_the_error(lib: jaxc.Library) -> None:
    with pytest.raises(JaxRuntimeError, match="text: x is below zero"):
        jax.block_until_ready(lib.text(-f32(2)))
    np.testing.assert_array_equal(lib.text(f32(2)), [1, 2])


# ---- the object ----


def test_the_function_describes_itself(lib: jaxc.Library) -> None:
    assert lib.add.__name__ == "add"
    assert lib.add.signature == "(n),()->(n)"
    assert lib.add.prototype == "void add(int n, const float x[n], float a, float y[n])"
    assert lib.add.__doc__ == f"Adds a to each element.\n\nC: {lib.add.prototype}"
    assert repr(lib.add) == "<jaxc function add (n),()->(n)>"
    assert str(inspect.signature(lib.line)) == "(a, b, *, n)"


def test_functions_are_hashable_and_equal_by_build(lib: jaxc.Library) -> None:
    again = jaxc.compile(SOURCE, name="calls")
    assert again.add == lib.add
    assert hash(again.add) == hash(lib.add)
    assert lib.add != lib.cube
    other = jaxc.compile("void add(int n, const float x[n], float a, float y[n]) {}")
    assert other.add != lib.add


def test_functions_pickle_by_library_and_name(lib: jaxc.Library) -> None:
    function = pickle.loads(pickle.dumps(lib.add))
    assert function == lib.add
    np.testing.assert_array_equal(function(f32(1), 1.0), [2])
    assert pickle.loads(pickle.dumps(lib.norm)) == lib.norm


def test_arrays_of_other_kinds(lib: jaxc.Library) -> None:
    class Wrapped:
        def __jax_array__(self) -> Any:
            return f32(2)

    np.testing.assert_array_equal(lib.add(Wrapped(), 1.0), [2, 3])
    np.testing.assert_array_equal(lib.add(np.asarray(f32(2)), np.float32(1)), [2, 3])
    keys = jax.random.split(jax.random.key(0), 3)
    with pytest.raises(
        TypeError, match="add: argument 'x' has dtype key<fry>, expected float32"
    ):
        lib.add(keys, 1.0)


def test_a_static_zero_keeps_its_sign() -> None:
    f = jaxc.compile("""
#include <math.h>
#pragma jaxc static(k)
float sign(float k, float x) { return copysignf(x, k); }
""").sign
    for k in (0.0, -0.0, 0.0, -0.0, 1.0, -1.0):
        assert f(k, 2.0) == np.copysign(2.0, k)
    assert np.isfinite(f(float("nan"), 2.0))


def test_a_repeated_static_value_is_of_its_own_type() -> None:
    f = jaxc.compile("""
#pragma jaxc static(k, b)
int twice(int k, _Bool b, int n, const float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = (float)k * x[i] + b;
  return 0;
}
""").twice
    x = jnp.ones(3)
    for _ in range(3):
        assert (f(2, True, x) == 3).all()
        assert (f(1, False, x) == 1).all()
        assert (f(1, True, x) == 2).all()
        with pytest.raises(TypeError):
            f(1.0, True, x)
        with pytest.raises(TypeError):
            f([1], True, x)
