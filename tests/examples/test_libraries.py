"""examples/libraries: GSL, LAPACK and FFTW as JAX functions, where they are installed."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.special

import jaxc
from jaxc.compiler import find_compiler

pytestmark = pytest.mark.usefixtures("x64")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "libraries"
#: Header, names for the linker, Debian's package.
LIBRARIES = {
    "gsl": ("gsl/gsl_sf_bessel.h", ("gsl", "gslcblas"), "libgsl-dev"),
    "lapack": ("lapacke.h", ("lapacke",), "liblapacke-dev"),
    "fftw": ("fftw3.h", ("fftw3",), "libfftw3-dev"),
}
FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wno-unknown-pragmas")


@functools.cache
def why_not(name: str) -> str:
    """Why a library cannot be used here, or nothing."""
    header, libraries, package = LIBRARIES[name]
    text = f"#include <stddef.h>\n#include <stdio.h>\n#include <{header}>\n"
    found = find_compiler()
    try:
        found.run(["-fsyntax-only", "-x", "c", "-"], what=header, text=text)
        links = [f"-l{library}" for library in libraries]
        found.run(["-shared", *links, "-o", "/dev/null"], what=name)
    except RuntimeError as error:
        return f"no {name} here (on Debian: apt install {package}): {str(error)[:200]}"
    return ""


def load(name: str) -> Any:
    if reason := why_not(name):
        pytest.skip(reason)
    return jaxc.load(FOLDER / f"{name}.c", libraries=LIBRARIES[name][1])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


# GSL.


def test_a_bound_function_of_gsl() -> None:
    load("gsl")
    x = np.linspace(-20, 20, 500)
    lib = jaxc.bind(
        "double gsl_sf_bessel_J0(double x);\n"
        "int gsl_sf_bessel_Jn_array(int nmin, int nmax, double x, double r[nmax - nmin + 1]);",
        "gsl",
    )
    np.testing.assert_allclose(lib.gsl_sf_bessel_J0(x), scipy.special.j0(x), atol=1e-14)
    array = lib.gsl_sf_bessel_Jn_array
    expected = scipy.special.jv(np.arange(2, 7), x[:, None])
    np.testing.assert_allclose(array(x, nmin=2, nmax=6), expected, atol=1e-13)
    got = jax.jit(jax.vmap(lambda x: array(x, nmin=2, nmax=6)))(x)
    np.testing.assert_allclose(got, expected, atol=1e-13)
    with pytest.raises(ValueError, match=r"gsl.*' has no function 'gsl_sf_bessel_j99'"):
        jaxc.bind("double gsl_sf_bessel_j99(double x);", "gsl")


def test_gsl_s_own_headers() -> None:
    load("gsl")
    lib = jaxc.bind(
        "#include <gsl/gsl_sf_gamma.h>\n#include <gsl/gsl_integration.h>\n"
        "double gsl_sf_lngamma(const double x);\n"
        "double gsl_sf_choose(unsigned int n, unsigned int m);\n"
        "int gsl_sf_lngamma_e(double x, gsl_sf_result *result);\n"
        "int gsl_integration_qng(const gsl_function *f, double a, double b, double epsabs,"
        " double epsrel, double *result, double *abserr, size_t *neval);",
        "gsl",
    )
    assert sorted(lib) == ["gsl_sf_choose", "gsl_sf_lngamma"]
    np.testing.assert_allclose(lib.gsl_sf_lngamma(2.5), scipy.special.gammaln(2.5))
    assert lib.gsl_sf_choose(5, 2) == 10
    for name, kind in (("lngamma_e", "gsl_sf_result"), ("", "gsl_function")):
        refused = f"gsl_sf_{name}" if name else "gsl_integration_qng"
        with pytest.raises(AttributeError, match=f"struct {kind}.*write a small C file over"):
            getattr(lib, refused)


def test_a_status_of_gsl_is_an_error_and_not_the_end_of_the_process() -> None:
    lib = load("gsl")
    x = np.linspace(0.1, 5, 9)
    value, error = lib.bessel_k0(x)
    np.testing.assert_allclose(value, scipy.special.k0(x), 1e-13)
    assert (error < 1e-12).all()
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="input domain error"):
        jax.block_until_ready(lib.bessel_k0(-1.0))


def test_a_derivative_beside_the_small_c_file() -> None:
    lib = load("gsl")
    x = np.linspace(0.1, 5, 9)
    got = jax.vmap(jax.jacfwd(lib.bessel_k0_value))(x)
    np.testing.assert_allclose(got, -scipy.special.k1(x), 1e-12)


def test_a_callback_in_c() -> None:
    lib = load("gsl")
    x = np.linspace(0, 30, 64)
    got = np.asarray(lib.debye(3.0, x))
    assert got[0] == 0
    assert got[-1] == pytest.approx(np.pi**4 / 15, rel=1e-6)
    small = np.asarray([0.01, 0.1])  # t^2 - t^3 / 2 + t^4 / 12, integrated
    expected = small**3 / 3 - small**4 / 8 + small**5 / 60
    np.testing.assert_allclose(lib.debye(3.0, small), expected, 1e-6)


def test_the_program() -> None:
    load("gsl")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "gsl.py")],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "K0(-1): " in done.stdout
    assert "bessel_k0: input domain error" in done.stdout


# LAPACK.


def test_solvers(rng: np.random.Generator) -> None:
    lib = load("lapack")
    a, b = rng.standard_normal((3, 5, 5)), rng.standard_normal((4, 1, 5))
    expected = np.linalg.solve(a, np.broadcast_to(b[..., None], (4, 3, 5, 1)))[..., 0]
    np.testing.assert_allclose(lib.solve(a, b), expected, 1e-9)
    np.testing.assert_allclose(jax.jit(lib.solve)(a, b), expected, 1e-9)
    lower, upper = rng.standard_normal((2, 6))
    diagonal, b = rng.standard_normal((2, 7))
    matrix = np.diag(lower, -1) + np.diag(diagonal) + np.diag(upper, 1)
    got = lib.solve_tridiagonal(lower, diagonal, upper, b)
    np.testing.assert_allclose(got, np.linalg.solve(matrix, b), 1e-9)


def test_the_gradient_of_a_solver(rng: np.random.Generator) -> None:
    lib = load("lapack")
    a, b = rng.standard_normal((2, 4, 4)), rng.standard_normal(4)

    def loss(solve: Any) -> Any:
        return lambda a, b: jnp.sum(solve(a, b) ** 3)

    def reference(a: Any, b: Any) -> Any:
        return jnp.linalg.solve(a, jnp.broadcast_to(b, (2, 4))[..., None])[..., 0]

    ours = jax.grad(loss(lib.solve), (0, 1))(a, b)
    theirs = jax.grad(loss(reference), (0, 1))(a, b)
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, 1e-8)


def test_a_singular_matrix_is_an_error_with_lapack_s_info() -> None:
    lib = load("lapack")
    with pytest.raises(
        (ValueError, jax.errors.JaxRuntimeError), match="solve: returned status 3"
    ):
        jax.block_until_ready(lib.solve(np.diag([1.0, 2.0, 0.0]), np.ones(3)))


def test_lapacke_bound_as_it_is(rng: np.random.Generator) -> None:
    """In place, with pivots, in rows: what LAPACKE's prototype says, and the pragma adds."""
    load("lapack")
    dgesv = jaxc.bind(
        """
        #pragma jaxc static(matrix_layout, lda, ldb) inout(a, b)
        int LAPACKE_dgesv(int matrix_layout, int n, int nrhs, double a[n][n], int lda,
                          int ipiv[n], double b[n][nrhs], int ldb);
        """,
        "lapacke",
    ).LAPACKE_dgesv
    a, b = rng.standard_normal((4, 4)), rng.standard_normal((2, 4, 3))
    lu, pivots, x = dgesv(101, a, 4, b, 3)
    np.testing.assert_allclose(x, np.linalg.solve(np.broadcast_to(a, (2, 4, 4)), b), 1e-9)
    expected, order = scipy.linalg.lu_factor(a)
    np.testing.assert_allclose(lu, np.broadcast_to(expected, (2, 4, 4)), 1e-9)
    np.testing.assert_array_equal(pivots[0], order + 1)
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="returned status 1"):
        jax.block_until_ready(dgesv(101, np.zeros((1, 1)), 1, np.ones((1, 1)), 1))


# FFTW.


def test_fft_and_its_derivative(rng: np.random.Generator) -> None:
    lib = load("fftw")
    for n in (1, 2, 7, 64, 0):
        x = rng.standard_normal((3, n)) + 1j * rng.standard_normal((3, n))
        expected = np.fft.fft(x) if n else x
        np.testing.assert_allclose(lib.fft(x), expected, atol=1e-12)
    x = rng.standard_normal(8) + 1j * rng.standard_normal(8)
    d_x = rng.standard_normal(8) + 1j * rng.standard_normal(8)
    np.testing.assert_allclose(jax.jvp(lib.fft, (x,), (d_x,))[1], np.fft.fft(d_x), atol=1e-12)
    ours = jax.vjp(lib.fft, x)[1](d_x)[0]
    np.testing.assert_allclose(ours, jax.vjp(jnp.fft.fft, x)[1](d_x)[0], atol=1e-12)


def test_plans_of_many_lengths_made_by_many_threads_at_once(rng: np.random.Generator) -> None:
    lib = load("fftw")
    x = rng.standard_normal((4000, 100)) + 0j

    def all_lengths(x: Any) -> Any:
        return [lib.fft(x[:, :n]) for n in range(80, 100)]

    for y, n in zip(jax.jit(all_lengths)(x), range(80, 100), strict=True):
        np.testing.assert_allclose(y, np.fft.fft(x[:, :n]), atol=1e-10)


# The files.


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_compiles_without_warnings(name: str, compiler: str, tmp_path: Path) -> None:
    if reason := why_not(name):
        pytest.skip(reason)
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    file = FOLDER / f"{name}.c"
    output = ["-c", str(file), "-o", str(tmp_path / "example.o")]
    done = subprocess.run(
        [compiler, *FLAGS, "-O2", *output], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.c")), ids=lambda file: file.name)
def test_layout(file: Path) -> None:
    lines = file.read_text(encoding="ascii").splitlines()
    assert lines[0].startswith(f"/* {file.name}: ")
    assert "SPDX-License-Identifier: Apache-2.0" in lines[1]
    assert max(map(len, lines)) <= 90
    assert not any(line != line.rstrip() or "\t" in line for line in lines)
