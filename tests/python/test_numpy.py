"""``Function.numpy``: the same loops as NumPy ufuncs."""

from __future__ import annotations

import gc
import threading
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jaxc

SOURCE = r"""
#include <jaxc/context.h>
#include <jaxc/types.h>
#include <math.h>
#include <string.h>

void add(int n, const float x[n], float a, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] + a;
}
void fir(int n, int k, const float x[n], const float w[k], float y[n - k + 1]) {
  for (int i = 0; i < n - k + 1; i++) {
    y[i] = 0;
    for (int j = 0; j < k; j++) y[i] += x[i + j] * w[k - 1 - j];
  }
}
void halve(int n, const float x[2 * n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[2 * i];
}
void line(float a, float b, int n, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = a + (b - a) * (float)i / (float)(n - 1);
}
double cube(double x) { return x * x * x; }
double product(double x, double y) { return x * y; }
float answer(void) { return 42; }
void ramp(int n, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = (float)i;
}
static int sum;
#pragma jaxc effect
void note(int value) { sum += value; }
#pragma jaxc effect
int told(void) { return sum; }
#pragma jaxc effect
void noted(int n, const float x[n]) { sum += (int)x[0]; }
void transpose(int n, int k, const float x[n][k], float y[k][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < k; j++) y[j][i] = x[i][j];
}
void stats(int n, const float x[n], float *mean, float *largest) {
  *mean = 0;
  *largest = x[0];
  for (int i = 0; i < n; i++) {
    *mean += x[i] / (float)n;
    if (x[i] > *largest) *largest = x[i];
  }
}
#pragma jaxc inout(x)
void twice(int n, float x[n]) {
  for (int i = 0; i < n; i++) x[i] *= 2;
}
#pragma jaxc scratch(w)
void reversed(int n, const float x[n], float w[n], float y[n]) {
  for (int i = 0; i < n; i++) w[i] = x[n - 1 - i];
  for (int i = 0; i < n; i++) y[i] = w[i];
}
#pragma jaxc static(power, kind)
float powered(float x, int power, const char *kind) {
  float y = 1;
  for (int i = 0; i < power; i++) y *= x;
  return strcmp(kind, "negative") == 0 ? -y : y;
}
#pragma jaxc static(power)
float raised(int power, float x) { return power == 2 ? x * x : x; }
#pragma jaxc scalar(y)
int root(double x, double *y) {
  *y = sqrt(x);
  return x < 0 ? 7 : 0;
}
const char *checked(int n, const float x[n], float *r) {
  *r = x[0];
  return x[0] < 0 ? "x[0] is negative" : NULL;
}
#pragma jaxc serial
int counted(int x) {
  static int inside;
  int most = 0;
  for (int i = 0; i < 100; i++) {
    if (++inside > most) most = inside;
    inside--;
  }
  return most + x;
}
float own(jaxc_context *context, float x) {
  void *memory;
  if (jaxc_context_host_memory(context, 64, &memory) != JAXC_OK) return -1;
  memset(memory, 0, 64);
  return x + (float)*(char *)memory;
}
jaxc_bf16 half(jaxc_bf16 x) { return jaxc_bf16_from(jaxc_bf16_to(x) / 2); }
#pragma jaxc overload(scale)
float scale_f(float x) { return 2 * x; }
#pragma jaxc overload(scale)
double scale_d(double x) { return 2 * x; }
"""


@pytest.fixture(scope="module")
def lib() -> Any:
    return jaxc.compile(SOURCE)


def of(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_it_is_a_ufunc_with_the_signature_of_the_prototype(lib: Any) -> None:
    assert isinstance(lib.add.numpy, np.ufunc)
    assert lib.add.numpy.signature == "(n),()->(n)"
    assert lib.cube.numpy.signature is None
    assert lib.cube.numpy.types == ["d->d"]
    assert lib.scale.numpy.types == ["f->f", "d->d"]
    assert lib.add.numpy is lib.add.numpy
    assert "void add(int n" in lib.add.numpy.__doc__


def test_broadcasting_out_and_where(lib: Any) -> None:
    x = of(3, 4)
    np.testing.assert_array_equal(lib.add.numpy(x, np.float32(1)), x + 1)
    np.testing.assert_array_equal(
        lib.add.numpy(x, x[:, 0][:, None]), x + x[:, 0][:, None, None]
    )
    out = np.empty((3, 4), np.float32)
    assert lib.add.numpy(x, 1, out=out) is out
    np.testing.assert_array_equal(out, x + 1)
    y = np.arange(4.0)
    np.testing.assert_array_equal(
        lib.cube.numpy(y, where=y > 1, out=np.zeros(4)), [0, 0, 8, 27]
    )
    assert lib.product.numpy.reduce(y + 1) == 24
    np.testing.assert_array_equal(lib.product.numpy.outer(y, y), np.outer(y, y))
    first, second = lib.stats.numpy(x)
    np.testing.assert_allclose(first, x.mean(1), rtol=1e-5)
    np.testing.assert_array_equal(second, x.max(1))


def test_arrays_with_any_steps_and_in_place(lib: Any) -> None:
    x = of(6, 8)
    np.testing.assert_array_equal(lib.transpose.numpy(x), x.T)
    np.testing.assert_array_equal(lib.transpose.numpy(x.T), x)
    np.testing.assert_array_equal(lib.transpose.numpy(x[::2, ::-3]), x[::2, ::-3].T)
    stack = of(5, 3, 4)
    np.testing.assert_array_equal(
        lib.transpose.numpy(stack.transpose(2, 1, 0)), stack.transpose(2, 0, 1)
    )
    y = x.copy()
    lib.add.numpy(y, 1, out=y)
    np.testing.assert_array_equal(y, x + 1)
    square = of(4, 4)
    z = square.copy()
    lib.transpose.numpy(z, out=z)
    np.testing.assert_array_equal(z, square.T)
    into = np.zeros((8, 12), np.float32)
    lib.transpose.numpy(x, out=into[:, ::2])
    np.testing.assert_array_equal(into[:, ::2], x.T)
    assert not into[:, 1::2].any()
    moved = lib.add.numpy(x, 1, axis=0)
    np.testing.assert_array_equal(moved, x + 1)


@pytest.mark.parametrize("leading", [(), (0,), (1,), (2, 3)])
@pytest.mark.parametrize(
    ("name", "cores"),
    [
        ("add", ((4,), ())),
        ("fir", ((6,), (3,))),
        ("halve", ((8,),)),
        ("stats", ((3,),)),
        ("twice", ((4,),)),
        ("reversed", ((5,),)),
        ("own", ((),)),
        ("scale_f", ((),)),
    ],
)
def test_it_gives_what_jax_gives(
    lib: Any, name: str, cores: tuple[tuple[int, ...], ...], leading: tuple[int, ...]
) -> None:
    args = [of(*leading, *core) for core in cores]
    before = [arg.copy() for arg in args]
    function = getattr(lib, name)
    ours = function.numpy(*args)
    jax.tree.map(np.testing.assert_array_equal, ours, function(*args))
    jax.tree.map(np.testing.assert_array_equal, args, before)


def test_static_values_and_dimensions(lib: Any) -> None:
    x = of(3)
    np.testing.assert_array_equal(lib.powered.numpy(x, 2, kind="positive"), x * x)
    np.testing.assert_array_equal(lib.powered.numpy(x, kind="negative", power=1), -x)
    f = np.float32
    np.testing.assert_array_equal(lib.line.numpy(f(0), f(1), n=5), np.linspace(0, 1, 5))
    assert lib.line.numpy(np.zeros(3, f), f(1), n=2).shape == (3, 2)
    with pytest.raises(TypeError, match="powered: argument 'kind' is missing"):
        lib.powered.numpy(x, 2)
    with pytest.raises(TypeError, match=r"static argument 'power' is 1\.5, expected int32"):
        lib.powered.numpy(x, 1.5, kind="")
    with pytest.raises(TypeError, match="'power' is given by position and by name"):
        lib.powered.numpy(x, 2, power=3)
    np.testing.assert_array_equal(lib.powered.numpy(kind="", x=x, power=2), x * x)
    np.testing.assert_array_equal(lib.raised.numpy(x, power=2), x * x)
    np.testing.assert_array_equal(lib.raised.numpy(2, x), x * x)
    out = np.empty(3, f)
    assert lib.powered.numpy(x, 1, "", out=out) is out
    with pytest.raises(TypeError, match=r"'n' must be an int, got 2\.0"):
        lib.line.numpy(f(0), f(1), n=2.0)


def test_functions_without_inputs_or_without_results(lib: Any) -> None:
    assert lib.answer.numpy() == 42
    np.testing.assert_array_equal(lib.answer.numpy(out=np.zeros(3, np.float32)), [42] * 3)
    np.testing.assert_array_equal(lib.ramp.numpy(n=3), [0, 1, 2])
    before = lib.told.numpy()
    assert lib.note.numpy(np.arange(4, dtype=np.int32)) == ()
    assert lib.told.numpy() == before + 6


def test_small_floats(lib: Any) -> None:
    x = np.arange(5).astype(ml_dtypes.bfloat16)
    out = lib.half.numpy(x)
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(out.astype(float), np.arange(5) / 2)


def test_errors(lib: Any) -> None:
    with pytest.raises(RuntimeError, match=r"root: returned status 7; 0 is success"):
        lib.root.numpy([1.0, -1.0])
    with pytest.raises(RuntimeError, match=r"checked: x\[0\] is negative"):
        lib.checked.numpy(-np.ones((2, 3), np.float32))
    with pytest.raises(
        ValueError, match=r"halve: 'x' has 3 elements on core axis 0, which no n"
    ):
        lib.halve.numpy(of(3))
    with pytest.raises(ValueError, match=r"fir: the size n - k \+ 1 of 'y' has no value"):
        lib.fir.numpy(of(2), of(4))
    with pytest.raises(TypeError, match="safely coerced"):
        lib.add.numpy(np.zeros(3), 1)
    with pytest.raises(TypeError, match="noted: has core axes and no result, and no ufunc"):
        _ = lib.noted.numpy


def test_no_warning_of_a_loop_that_numpy_did_not_ask_for(lib: Any) -> None:
    with np.errstate(all="raise"):
        assert lib.root.numpy(4.0) == 2
        lib.cube.numpy(np.array([1e200, 0.0]))


def test_overloads_of_several_signatures_are_no_ufunc() -> None:
    lib = jaxc.compile(
        "#pragma jaxc overload(f)\nfloat f_a(float x) { return x; }\n"
        "#pragma jaxc overload(f)\nvoid f_b(int n, const double x[n], double y[n]) {\n"
        "  for (int i = 0; i < n; i++) y[i] = x[i]; }\n"
    )
    with pytest.raises(
        TypeError, match=r"f: its overloads have different signatures, \(\)->\(\)"
    ):
        _ = lib.f.numpy
    assert lib.f_a.numpy(np.float32(2)) == 2


def test_serial_functions_are_alone_and_threads_may_call(lib: Any) -> None:
    x = np.zeros(20_000, np.int32)
    found: list[Any] = []

    def call(f: Any) -> None:
        found.append(int(np.max(f(x))))

    threads = [threading.Thread(target=call, args=(lib.counted.numpy,)) for _ in range(4)]
    threads += [threading.Thread(target=call, args=(lib.counted,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 6


def test_the_form_outlives_the_library_object() -> None:
    form = jaxc.compile("double triple(double x) { return 3 * x; }").triple.numpy
    gc.collect()
    assert form(2.0) == 6


def test_callbacks_and_ufuncs_have_one_too() -> None:
    @jaxc.callback("(n)->()")
    def total(x: Any, out: Any) -> None:
        if x[0] < 0:
            raise KeyError("negative")
        out[()] = x.sum()

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    total(jnp.asarray(x))
    np.testing.assert_array_equal(total.numpy(x), x.sum(1))
    with pytest.raises(RuntimeError, match="total: KeyError: 'negative'"):
        total.numpy(-x - 1)
    assert jaxc.ufunc(np.logaddexp).numpy is np.logaddexp
