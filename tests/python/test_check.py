"""jaxc.check passes what is right and finds each planted fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxc

pytestmark = pytest.mark.usefixtures("x64")


def array(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 2, shape)


@pytest.fixture(scope="module")
def lib() -> jaxc.Library:
    return jaxc.load(Path(__file__).parent / "derivatives.c")


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("rms", (array(5), 0.1), {}),
        ("matvec", (array(3, 4), array(4)), {}),
        ("fir", (array(2), array(6)), {}),
        ("power", (1.7, 3), {}),
        ("product", (1.5 + 2j, -0.5 + 1j), {}),
        ("grow", (3, array(4)), {}),
        ("line", (1.0, 3.0), {"n": 5}),
        ("forward_only", (0.3,), {}),
        ("reverse_only", (0.3,), {}),
        ("neither", (0.3,), {}),
    ],
)
def test_right_functions_pass(
    lib: jaxc.Library, name: str, args: Any, kwargs: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = jaxc.check(lib[name], *args, **kwargs)
    assert all(outcome.problem is None for outcome in outcomes)
    printed = capsys.readouterr().out
    assert f"<jaxc function {name} " in printed
    assert printed.count(" ok\n") == len(outcomes) >= 5


SCALE = """
void f(int n, const double x[n], double a, double y[n]) {
  for (int i = 0; i < n; i++) y[i] = a * x[i] * x[i];
}
"""
RIGHT_JVP = """
void f_jvp(int n, const double x[n], double a, const double d_x[n], double d_a, double d_y[n]) {
  for (int i = 0; i < n; i++) d_y[i] = 2 * a * x[i] * d_x[i] + d_a * x[i] * x[i];
}
"""
RIGHT_BWD = """
void f_bwd(int n, const double x[n], double a, const double ct_y[n], double ct_x[n], double *ct_a) {
  *ct_a = 0;
  for (int i = 0; i < n; i++) {
    ct_x[i] = 2 * a * x[i] * ct_y[i];
    *ct_a += ct_y[i] * x[i] * x[i];
  }
}
"""


def planted(*changes: tuple[str, str], source: str = SCALE + RIGHT_JVP + RIGHT_BWD) -> Any:
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return jaxc.compile(source, name="planted").f


def test_the_unchanged_function_passes() -> None:
    jaxc.check(planted(), array(4), 1.5)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("d_y[i] = 2 * a", "d_y[i] = 3 * a"), r"f: jvp by x, finite differences: got .* expected"),
        (("ct_x[i] = 2 * a", "ct_x[i] = 2.01 * a"), "f: vjp by x, finite differences: got"),
        (("+ d_a * x[i] * x[i]", "+ 0 * d_a"), "f: jvp by a, finite differences"),
        (("*ct_a += ct_y[i]", "*ct_a += 0 * ct_y[i]"), "f: vjp by a, finite differences"),
        ((", double *ct_a) {\n  *ct_a = 0;", ") {\n  double z = 0, *ct_a = &z;"),
         "f: vjp by a, .*: NotImplementedError: f: the derivative with respect to 'a' was asked "
         "for, but f_bwd has no output 'ct_a'"),
        (("a * x[i] * x[i];\n}\n\nvoid f_jvp", "a * x[i] * x[i] + 1e-9 * x[n];\n}\n\nvoid f_jvp"),
         "f: reads only its arrays: result 'y' differs"),
        (("y[i] = a * x[i]", "y[i] = x[-1] * 1e-9 + a * x[i]"), "f: reads only its arrays"),
        (("y[i] = a * x[i] * x[i]", "y[i] += a * x[i] * x[i]"),
         "f: every result is written: result 'y' differs"),
        (("for (int i = 0; i < n; i++) y[i]", "for (int i = 1; i < n; i++) y[i]"),
         "f: every result is written"),
        (("for (int i = 0; i < n; i++) y[i]", "y[n] = 0; for (int i = 0; i < n; i++) y[i]"),
         "f: writes only its results: writes outside of y"),
        (("  *ct_a = 0;\n", ""), "f: f_bwd: every result is written|f: vjp by a"),
        (("ct_x[i] = 2 * a * x[i]", "ct_x[i] = 1e-9 * x[n] + 2 * a * x[i]"),
         "f: f_bwd: reads only its arrays"),
        (("d_y[i] = 2 * a", "d_y[n] = 0, d_y[i] = 2 * a"), "f: f_jvp: writes only its results"),
    ],
)  # fmt: skip
def test_each_planted_fault_is_found(change: tuple[str, str], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        jaxc.check(planted(change), array(4), 1.5)


def test_a_guard_copied_onto_a_guard_is_found() -> None:
    source = """
void f(int n, const double x[n], double y[n]) { for (int i = 0; i < n; i++) y[i] = x[i]; }
void f_bwd(int n, const double x[n], const double ct_y[n], double ct_x[n]) {
  for (int i = 0; i <= n; i++) ct_x[i] = ct_y[i];
}
"""
    with pytest.raises(AssertionError, match=r"f: f_bwd: writes only its results"):
        jaxc.check(planted(source=source), array(3))


def test_a_fwd_that_gives_other_outputs_is_found() -> None:
    source = """
double f(double x) { return x * x; }
double f_fwd(double x, double r[1]) { r[0] = x; return x * x + 1; }
double f_bwd(const double r[1], double ct_return) { return 2 * r[0] * ct_return; }
"""
    with pytest.raises(AssertionError, match=r"f: f_fwd: gives the outputs of f: got 10"):
        jaxc.check(planted(source=source), 3.0)


@pytest.mark.parametrize("wrong", ["100 * d_x * d_y", "fabs(d_y)"])
def test_a_jvp_that_is_not_linear_is_found(wrong: str) -> None:
    source = f"""
#include <math.h>
double f(double x, double y) {{ return x * y; }}
double f_jvp(double x, double y, double d_x, double d_y) {{ return d_x * y + x * d_y + {wrong}; }}
"""
    with pytest.raises(AssertionError, match=r"f: jvp by"):
        jaxc.check(planted(source=source), 2.0, 3.0)


def test_real_and_complex_may_meet() -> None:
    lib = jaxc.compile("""
#include <complex.h>
void to_complex(int n, const double x[n], double complex y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] * x[i] * I;
}
void to_complex_bwd(int n, const double x[n], const double complex ct_y[n], double ct_x[n]) {
  for (int i = 0; i < n; i++) ct_x[i] = creal(2 * x[i] * I * ct_y[i]);
}
void to_real(int n, const double complex x[n], double y[n]) {
  for (int i = 0; i < n; i++) y[i] = creal(x[i] * conj(x[i]));
}
void to_real_bwd(int n, const double complex x[n], const double ct_y[n], double complex ct_x[n]) {
  for (int i = 0; i < n; i++) ct_x[i] = 2 * conj(x[i]) * ct_y[i];
}
""")
    jaxc.check(lib.to_complex, array(3))
    jaxc.check(lib.to_real, array(3) + 1j * array(3, seed=1))


def test_rules_in_python_are_checked_in_their_direction() -> None:
    f = jaxc.compile("double f(double x) { return x * x; }").f
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * x * ct,))
    jaxc.check(f, 3.0)
    f.defjvp(lambda primals, tangents: (f(*primals), 2.1 * primals[0] * tangents[0]))
    with pytest.raises(AssertionError, match="f: jvp by x, finite differences"):
        jaxc.check(f, 3.0)


def test_a_point_that_is_not_smooth_is_said() -> None:
    source = "#include <math.h>\ndouble f(double x) { return sqrt(x); }\n"
    source += "double f_jvp(double x, double d_x) { return NAN; }\n"
    with pytest.raises(AssertionError, match="choose a point where f is smooth"):
        jaxc.check(planted(source=source), -1.0)


def test_a_kernel_that_cannot_be_called_is_said() -> None:
    source = "double f(double x) { return x; }\nvoid f_bwd(double r, double ct_return, double *q) {}\n"
    f = planted(source=source)
    text = r"f: f_bwd is linked: it has parameter 'q' \(double \*q\) without a bound"
    with pytest.raises(AssertionError, match=text):
        jaxc.check(f, 1.0)
    text = r"f: the C function f_bwd is there and cannot be used: it has parameter 'q'"
    with pytest.raises(NotImplementedError, match=text):
        jax.grad(f)(1.0)


def test_a_kernel_that_cannot_be_called_leaves_the_other_direction_alone() -> None:
    source = "double f(double x) { return x * x; }\n"
    source += "double f_jvp(double x, double d_x) { return 2 * x * d_x; }\n"
    source += "void f_bwd(double r, double ct_return, double *q) {}\n"
    f = planted(source=source)
    np.testing.assert_allclose(jax.jvp(f, (3.0,), (1.0,)), (9, 6))
    with pytest.raises(NotImplementedError, match="f_bwd is there and cannot be used"):
        jax.grad(f)(3.0)


def test_a_row_that_depends_on_the_one_before_is_found() -> None:
    source = """
double last;
void f(int n, const double x[n], double y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] + last;
  last = x[0];
}
"""
    function = planted(source=source)
    with pytest.raises(AssertionError, match=r"^f: "):
        jaxc.check(function, array(3))


def test_single_precision_has_its_own_tolerance() -> None:
    source = (SCALE + RIGHT_JVP + RIGHT_BWD).replace("double", "float")
    jaxc.check(jaxc.compile(source).f, array(4).astype(np.float32), 1.5)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match=r"jaxc\.check takes a jaxc function, got"):
        jaxc.check(np.sin, 1.0)  # type: ignore[arg-type]
