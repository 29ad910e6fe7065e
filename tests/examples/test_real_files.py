"""C files of public projects, as they are: they load, and their numbers are right.

Each comes from a source package that ``fetch`` downloads, or its test is skipped. A file's
value functions work at once. Functions of pointers work after a second file, which the
test writes, has declared them again with bounds. C lets a bound use only parameters to its
left; where a library has the length behind the array, the second file defines a function
of two lines around it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fetch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.ndimage
import scipy.optimize
import scipy.special
import scipy.stats
from scipy.spatial.transform import Rotation

import jaxc

pytestmark = pytest.mark.usefixtures("x64")

Array = np.ndarray[Any, Any]


@pytest.fixture
def second_file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the file that a user writes beside a library's own."""

    def write(text: str) -> Path:
        path = tmp_path / "declarations.h"
        path.write_text(text)
        return path

    return write


# Positions on the sky: the ERFA library, one function a file.


def erfa(*names: str) -> list[Path]:
    root = fetch.sdist(
        "pyerfa",
        "2.0.1.5",
        "17d6b24fe4846c65d5e7d8c362dcb08199dc63b30a236aedd73875cc83e1f6c0",
    )
    return [root / "liberfa/erfa/src" / f"{name}.c" for name in names]


def test_erfa_functions_of_numbers_work_at_once() -> None:
    lib = jaxc.load(erfa("anp", "anpm", "era00", "gmst06", "obl06", "falp03", "s2c"))
    rng = np.random.default_rng(1)
    angle = rng.uniform(-50, 50, 100)
    np.testing.assert_allclose(lib.eraAnp(angle), angle % (2 * np.pi), atol=1e-13)
    np.testing.assert_allclose(
        jax.vmap(lib.eraAnpm)(angle), np.arctan2(np.sin(angle), np.cos(angle)), atol=1e-13
    )
    # The Earth's rotation angle, by its definition.
    day = 2451545 + rng.uniform(-10000, 10000, (4, 5))
    turns = 0.7790572732640 + 1.00273781191135448 * (day - 2451545)
    expected = 2 * np.pi * (turns % 1)
    np.testing.assert_allclose(jax.jit(lib.eraEra00)(day, 0.0), expected, atol=1e-9)
    # The days and times that ERFA's own tests take, and what they expect.
    np.testing.assert_allclose(
        lib.eraGmst06(2400000.5, 53736.0, 2400000.5, 53736.0),
        1.754174971870091203,
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        lib.eraObl06(2400000.5, 54388.0), 0.4090749229387258204, rtol=1e-14
    )
    np.testing.assert_allclose(lib.eraFalp03(0.80), 6.226797973505507345, rtol=1e-12)
    # An output with a bound: longitude and latitude to a unit vector.
    theta, phi = rng.uniform(-1, 1, (2, 7))
    unit = [np.cos(theta) * np.cos(phi), np.sin(theta) * np.cos(phi), np.sin(phi)]
    np.testing.assert_allclose(lib.eraS2c(theta, phi), np.stack(unit, -1), atol=1e-15)


def test_erfa_functions_of_vectors_work_once_their_inputs_are_const(
    second_file: Callable[[str], Path],
) -> None:
    # ERFA's own prototypes have the bounds, but not the const that tells inputs.
    declarations = second_file("""
void eraC2s(const double p[3], double *theta, double *phi);
void eraRxp(const double r[3][3], const double p[3], double rp[3]);
void eraTrxp(const double r[3][3], const double p[3], double trp[3]);
void eraRxr(const double a[3][3], const double b[3][3], double atb[3][3]);
void eraRv2m(const double w[3], double r[3][3]);
void eraRm2v(const double r[3][3], double w[3]);
#pragma jaxc inout(r)
void eraRz(double psi, double r[3][3]);
""")
    names = ("c2s", "rxp", "trxp", "rxr", "rv2m", "rm2v", "rz", "tr", "cr", "cp")
    lib = jaxc.load([*erfa(*names), declarations])
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((6, 3))
    theta, phi = lib.eraC2s(vectors)
    np.testing.assert_allclose(theta, np.arctan2(vectors[:, 1], vectors[:, 0]), atol=1e-15)
    np.testing.assert_allclose(
        phi, np.arcsin(vectors[:, 2] / np.linalg.norm(vectors, axis=-1)), atol=1e-14
    )
    turn = rng.uniform(-1, 1, (4, 1, 3))
    matrix = lib.eraRv2m(turn)
    # ERFA turns the axes, SciPy the vector.
    expected = Rotation.from_rotvec(-turn[:, 0]).as_matrix()[:, None]
    np.testing.assert_allclose(matrix, expected, atol=1e-14)
    np.testing.assert_allclose(lib.eraRm2v(matrix), turn, atol=1e-14)
    # Four matrices and six vectors, whose leading axes broadcast.
    products = jax.jit(lib.eraRxp)(matrix, vectors)
    np.testing.assert_allclose(
        products, np.einsum("aij,bj->abi", expected[:, 0], vectors), atol=1e-14
    )
    np.testing.assert_allclose(
        lib.eraTrxp(matrix, products), np.broadcast_to(vectors, (4, 6, 3)), atol=1e-14
    )
    np.testing.assert_allclose(
        lib.eraRxr(matrix, matrix), np.asarray(expected) @ expected, atol=1e-14
    )
    np.testing.assert_allclose(
        lib.eraRz(0.3, matrix),
        Rotation.from_euler("z", -0.3).as_matrix() @ expected,
        atol=1e-14,
    )


# Special functions: a file of the ECOS solver, one of randomgen, and fdlibm in newlib.


def test_wright_omega_of_the_ecos_solver() -> None:
    root = fetch.sdist(
        "ecos", "2.0.14", "64b3201c0e0a7f0129050557c4ac50b00031e80a10534506dba1200c8dc1efe4"
    )
    lib = jaxc.load(
        root / "ecos/src/wright_omega.c",
        include=[root / "ecos/include", root / "ecos/external/SuiteSparse_config"],
    )
    z = np.concatenate([np.linspace(0, 5, 60), np.geomspace(5, 1e6, 40)]).reshape(4, 25)
    np.testing.assert_allclose(
        lib.wrightOmega(z), scipy.special.wrightomega(z).real, rtol=1e-13
    )
    assert lib.wrightOmega(-1.0) == -1  # what the file says of what it cannot do


def test_bessel_and_error_functions_of_newlib(second_file: Callable[[str], Path]) -> None:
    keep = ("newlib/libm/", "newlib/libc/include/")
    package = fetch.debian("newlib-source", "3.3.0-1.3+deb12u1", "newlib-*.tar.xz", keep)
    root = package / "newlib"
    names = [
        "e_j0",
        "w_j0",
        "e_j1",
        "w_j1",
        "e_jn",
        "w_jn",
        "s_erf",
        "e_exp",
        "e_log",
        "e_sqrt",
    ]
    # w_drem.c is C of 1978, without prototypes; a declaration gives it one.
    declarations = second_file("double drem(double x, double y);")
    lib = jaxc.load(
        [*(root / f"libm/math/{name}.c" for name in [*names, "w_drem"]), declarations],
        include=[root / "libm/common", root / "libc/include"],
        define={"_IEEE_LIBM": None},
    )
    x = np.linspace(-30, 30, 101)
    np.testing.assert_allclose(lib.j0(x), scipy.special.j0(x), atol=1e-15)
    np.testing.assert_allclose(jax.vmap(lib.j1)(x), scipy.special.j1(x), atol=1e-15)
    order = np.arange(6, dtype="int32")[:, None]
    np.testing.assert_allclose(
        jax.jit(lib.jn)(order, x), scipy.special.jv(order, x), atol=1e-14
    )
    positive = np.linspace(0.1, 30, 101)
    np.testing.assert_allclose(lib.y0(positive), scipy.special.y0(positive), atol=2e-15)
    np.testing.assert_allclose(lib.erf(x), scipy.special.erf(x), rtol=1e-15)
    np.testing.assert_allclose(lib.erfc(x[:80]), scipy.special.erfc(x[:80]), rtol=1e-13)
    y = 0.7 + np.arange(5.0)[:, None]
    expected = [[math.remainder(a, b) for a in x] for b in y[:, 0]]
    np.testing.assert_array_equal(lib.drem(x, y), expected)


# Sorting and filtering: the median filters of Astro-SCRAPPY.


def test_medians_and_median_filters_of_astroscrappy(
    second_file: Callable[[str], Path],
) -> None:
    root = fetch.sdist(
        "astroscrappy",
        "1.3.0",
        "b868079d3e9a2a83f02e2a22a4074fdf2bf115ce3d3038575e6170235c3bf2ca",
    )
    second = second_file("""
/* Sorts p as far as it must. */
#pragma jaxc inout(p)
float PyOptMed9(float p[9]);
#pragma jaxc inout(p)
float PyOptMed25(float p[25]);
float PyMedian(float *a, int n);
float median(int n, const float a[n]) { return PyMedian((float *)a, n); }
void PyMedFilt5(float *data, float *output, int nx, int ny);
void filter5(int ny, int nx, const float data[ny][nx], float output[ny][nx]) {
  PyMedFilt5((float *)data, (float *)output, nx, ny);
}
void PySepMedFilt7(float *data, float *output, int nx, int ny);
void separable7(int ny, int nx, const float data[ny][nx],
                float output[ny][nx]) {
  PySepMedFilt7((float *)data, (float *)output, nx, ny);
}
""")
    lib = jaxc.load(
        [root / "astroscrappy/utils/medutils.c", second], include=[fetch.python_headers()]
    )
    rng = np.random.default_rng(3)
    for function, n in ((lib.PyOptMed9, 9), (lib.PyOptMed25, 25)):
        values = rng.standard_normal((50, n)).astype("float32")
        median, moved = function(values)
        np.testing.assert_array_equal(median, np.median(values, axis=-1))
        np.testing.assert_array_equal(np.sort(moved), np.sort(values))
    for n in (1, 2, 3, 10, 1001):
        values = rng.integers(0, 50, (4, n)).astype("float32")
        expected = np.sort(values)[:, (n - 1) // 2]  # the lower one of an even number
        np.testing.assert_array_equal(lib.median(values), expected)
    images = rng.standard_normal((3, 20, 31)).astype("float32")
    inside = (slice(None), slice(3, -3), slice(3, -3))  # edges are copied
    expected = scipy.ndimage.median_filter(images, (1, 5, 5))
    np.testing.assert_array_equal(jax.jit(lib.filter5)(images)[inside], expected[inside])
    rows = scipy.ndimage.median_filter(images, (1, 1, 7))
    expected = scipy.ndimage.median_filter(rows, (1, 7, 1))
    found = jax.vmap(lib.separable7)(images)
    np.testing.assert_array_equal(found[inside], expected[inside])


# Solvers: the triangular systems and the quadratic programs of quadprog.


def quadprog() -> list[Path]:
    root = fetch.sdist(
        "quadprog",
        "0.1.13",
        "9d6dd32f2762f29b840fb83741d11e527ddf48745f63b79caad0e530b4a6a0ff",
    )
    names = ("linear-algebra", "qr-update", "solve.QP")
    return [root / "quadprog" / f"{name}.c" for name in names]


def test_linear_algebra_of_quadprog(second_file: Callable[[str], Path]) -> None:
    # Matrices are in Fortran's order: a[i + j * n] in C, and so a[j][i] here.
    declarations = second_file("""
double dot(int n, const double x[n], const double y[n]);
#pragma jaxc inout(a)
int cholesky(int n, double a[n][n]);
#pragma jaxc inout(b)
void triangular_solve(int n, const double a[n][n], double b[n]);
#pragma jaxc inout(b)
void triangular_solve_transpose(int n, const double a[n][n], double b[n]);
#pragma jaxc inout(a)
void triangular_invert(int n, double a[n][n]);
""")
    lib = jaxc.load([*quadprog(), declarations])
    rng = np.random.default_rng(4)
    root = rng.standard_normal((6, 8, 8))
    matrix = root @ root.mT + np.eye(8)
    right = rng.standard_normal((6, 8))
    np.testing.assert_allclose(lib.dot(right, right), (right**2).sum(-1), rtol=1e-14)

    @jax.jit
    def solve(matrix: jax.Array, right: jax.Array) -> jax.Array:
        factor = lib.cholesky(matrix)
        return lib.triangular_solve(factor, lib.triangular_solve_transpose(factor, right))

    np.testing.assert_allclose(
        solve(matrix, right), np.linalg.solve(matrix, right[..., None])[..., 0], rtol=1e-10
    )
    factor = lib.cholesky(matrix)
    upper = np.triu(factor.mT)
    np.testing.assert_allclose(upper, np.linalg.cholesky(matrix, upper=True), rtol=1e-12)
    inverse = np.triu(lib.triangular_invert(factor).mT)
    np.testing.assert_allclose(inverse @ upper, np.tile(np.eye(8), (6, 1, 1)), atol=1e-13)
    # The function's status is the number of the minor that is not positive.
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"cholesky: returned status 2\b"):
        lib.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])).block_until_ready()


def test_quadratic_programs_of_quadprog(second_file: Callable[[str], Path]) -> None:
    second = second_file("""
#include <string.h>
int qpgen2_(double *G, double *av, int n, double *xv, double *lagr, double *obj, double *C,
            double *bv, int q, int meq, int *iact, int *nact, int *iter, double *work,
            int factorized);
/* Minimises x' G x / 2 - a' x where C x >= b, with equality in the first meq rows. */
#pragma jaxc static(meq) scalar(objective) scratch(G1, a1, active, work)
int solve_qp(int n, int q, int meq, const double G[n][n], const double a[n],
             const double C[q][n], const double b[q], double x[n], double multipliers[q],
             double *objective, double G1[n][n], double a1[n], int active[q],
             double work[2 * n + 2 * q + n * (n + 5)]) {
  int count, iterations[2];
  memcpy(G1, G, sizeof(double[n][n]));
  memcpy(a1, a, sizeof(double[n]));
  return qpgen2_(G1[0], a1, n, x, multipliers, objective, (double *)C, (double *)b, q, meq,
                 active, &count, iterations, work, 0);
}
""")
    lib = jaxc.load([*quadprog(), second])
    rng = np.random.default_rng(5)
    n, q, meq = 4, 7, 1
    root = rng.standard_normal((n, n))
    quadratic = root @ root.T + np.eye(n)
    linear = rng.standard_normal((5, n))
    sides = rng.standard_normal((q, n))
    bounds = sides @ rng.standard_normal(n) - np.r_[0, rng.uniform(0, 1, q - 1)]
    # Five problems that differ in one operand.
    solve = jax.jit(lambda a: lib.solve_qp(meq, quadratic, a, sides, bounds))
    x, multipliers, objective = solve(linear)
    gradient = np.einsum("ij,kj->ki", quadratic, x) - linear
    np.testing.assert_allclose(gradient, multipliers @ sides, atol=1e-10)
    slack = np.einsum("qi,ki->kq", sides, x) - bounds
    np.testing.assert_allclose(slack[:, :meq], 0, atol=1e-10)
    assert np.all(slack > -1e-10)
    assert np.all(multipliers[:, meq:] >= 0)
    assert np.any(multipliers[:, meq:] > 1e-3)
    np.testing.assert_allclose(multipliers * slack, 0, atol=1e-10)
    np.testing.assert_allclose(
        objective,
        np.einsum("ki,ij,kj->k", x, quadratic, x) / 2 - np.einsum("ki,ki->k", linear, x),
        rtol=1e-12,
    )
    for k in range(len(linear)):
        found = scipy.optimize.minimize(
            lambda v, a: v @ quadratic @ v / 2 - a @ v,
            np.zeros(n),
            args=(linear[k],),
            method="SLSQP",
            constraints=[
                {"type": "eq", "fun": lambda v: sides[:meq] @ v - bounds[:meq]},
                {"type": "ineq", "fun": lambda v: sides[meq:] @ v - bounds[meq:]},
            ],
        )
        np.testing.assert_allclose(x[k], found.x, atol=1e-4)
    # x_0 >= 1 and -x_0 >= 0 have no solution.
    opposite = np.array([[1.0, 0.0], [-1.0, 0.0]])
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"solve_qp: returned status 1\b"):
        jax.block_until_ready(
            lib.solve_qp(0, np.eye(2), np.zeros(2), opposite, np.array([1.0, 0.0]))
        )


# Distances of strings: python-Levenshtein.


def edits(a: Sequence[int], b: Sequence[int]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            before, row[j + 1] = (
                row[j + 1],
                min(before + (x != y), row[j] + 1, row[j + 1] + 1),
            )
    return row[-1]


def letters(*words: str) -> Array:
    return np.array([list(word.encode()) for word in words], dtype="uint8")


def test_string_distances_of_python_levenshtein(second_file: Callable[[str], Path]) -> None:
    root = fetch.sdist(
        "python-Levenshtein",
        "0.12.2",
        "dc2395fbd148a1ab31090dd113c366695934b9e85fe5a4b2a032745efd0346f6",
    )
    declarations = second_file("""
#include <stddef.h>
typedef unsigned char lev_byte;
size_t lev_edit_distance(size_t len1, const lev_byte string1[len1], size_t len2,
                         const lev_byte string2[len2], int xcost);
size_t lev_hamming_distance(size_t len, const lev_byte string1[len],
                            const lev_byte string2[len]);
double lev_jaro_ratio(size_t len1, const lev_byte string1[len1], size_t len2,
                      const lev_byte string2[len2]);
double lev_jaro_winkler_ratio(size_t len1, const lev_byte string1[len1],
                              size_t len2, const lev_byte string2[len2],
                              double pfweight);
""")
    # Without Python.h its functions are not static, and two that they call are missing.
    lib = jaxc.load(
        [root / "Levenshtein/_levenshtein.c", declarations],
        define={
            "NO_PYTHON": None,
            "safe_malloc(n, size)": "calloc(n, size)",
            "safe_malloc_3(m, n, size)": "calloc((m) * (n), size)",
        },
    )
    assert lib.lev_edit_distance.signature == "(len1),(len2),()->()"
    distance = lib.lev_edit_distance(letters("kitten")[0], letters("sitting")[0], 0)
    assert (int(distance), distance.dtype) == (3, np.dtype("uint64"))
    # Every one of 20 words against every one of 30, as one call.
    rng = np.random.default_rng(6)
    left = rng.integers(97, 101, (20, 1, 9), dtype="uint8")
    right = rng.integers(97, 101, (30, 12), dtype="uint8")
    expected = [[edits(a, b) for b in right.tolist()] for a in left[:, 0].tolist()]
    np.testing.assert_array_equal(jax.jit(lib.lev_edit_distance)(left, right, 0), expected)
    np.testing.assert_array_equal(
        lib.lev_hamming_distance(left, left[:, 0]), (left != left[:, 0]).sum(-1)
    )
    # The pairs that the literature of record linkage gives for these.
    jaro = [("MARTHA", "MARHTA", 0.944444), ("DIXON", "DICKSONX", 0.766667)]
    for a, b, value in jaro:
        found = lib.lev_jaro_ratio(letters(a)[0], letters(b)[0])
        np.testing.assert_allclose(found, value, atol=1e-6)
    winkler = lib.lev_jaro_winkler_ratio(letters("MARTHA")[0], letters("MARHTA")[0], 0.1)
    np.testing.assert_allclose(winkler, 0.961111, atol=1e-6)


# Random generators: randomgen.


def randomgen(path: str) -> Path:
    root = fetch.sdist(
        "randomgen",
        "2.3.0",
        "e0de65d79e1346ac406b51df49a79b9e3d8b41a8a1a8e5de088c2fb49b8c89cc",
    )
    return root / "randomgen/src" / path


def test_random_generators_that_are_functions_of_a_counter(
    second_file: Callable[[str], Path],
) -> None:
    # Every state of a stream at once, from how many steps it is away.
    files = [randomgen("pcg32/pcg-advance-64.c"), randomgen("distributions/logfactorial.c")]
    lib = jaxc.load(files)
    seed, multiplier, increment = 42, 6364136223846793005, 1442695040888963407
    states = [seed]
    for _ in range(999):
        states.append((states[-1] * multiplier + increment) % 2**64)
    steps = np.arange(1000, dtype="uint64")
    advance = jax.jit(lambda k: lib.pcg_advance_lcg_64(seed, k, multiplier, increment))
    np.testing.assert_array_equal(advance(steps), np.array(states, dtype="uint64"))
    count = np.arange(300)
    np.testing.assert_allclose(
        lib.logfactorial(count), scipy.special.gammaln(count + 1.0), rtol=1e-13
    )
    # The block cipher Speck: a random function of a key and a counter.
    declarations = second_file("""
#include <stdint.h>
void Speck128256KeySchedule(const uint64_t K[4], uint64_t rk[34]);
void Speck128256Encrypt(const uint64_t Pt[2], uint64_t Ct[2],
                        const uint64_t rk[34]);
""")
    lib = jaxc.load([randomgen("speck-128/speck-128.ref.c"), declarations])
    key = np.arange(32, dtype="uint8").view("uint64")
    schedule = lib.Speck128256KeySchedule(key)
    # The test vector that the authors of Speck have published.
    plain = np.array([0x202E72656E6F6F70, 0x65736F6874206E49], dtype="uint64")
    cipher = np.array([0x4EEEB48D9C188F43, 0x4109010405C0F53E], dtype="uint64")
    np.testing.assert_array_equal(lib.Speck128256Encrypt(plain, schedule), cipher)
    counters = np.stack([np.arange(20000), np.zeros(20000)], -1).astype("uint64")
    words = np.asarray(lib.Speck128256Encrypt(counters, schedule)).ravel()
    uniform = (words >> np.uint64(11)) * 2.0**-53
    assert scipy.stats.kstest(uniform, "uniform").pvalue > 1e-3


def test_a_random_generator_with_a_state_of_its_own(
    second_file: Callable[[str], Path],
) -> None:
    declarations = second_file("""
#include <stdint.h>
#pragma jaxc effect serial
void init_genrand64(uint64_t seed);
#pragma jaxc effect serial
uint64_t genrand64_int64(void);
""")
    lib = jaxc.load([randomgen("mt64/mt64.orig.c"), declarations])

    @jax.jit
    def tenthousandth() -> jax.Array:
        lib.init_genrand64(5489)
        last = jnp.uint64(0)
        return jax.lax.fori_loop(0, 10000, lambda _, last: lib.genrand64_int64(), last)

    # The value that the C++ standard requires of mt19937_64.
    assert int(tenthousandth()) == 9981545732273789042
    assert int(tenthousandth()) == 9981545732273789042
    assert int(lib.genrand64_int64()) != 9981545732273789042


# A file with many functions: the NOVAS library of the US Naval Observatory.


def test_a_file_of_which_some_functions_are_refused_loads(
    second_file: Callable[[str], Path],
) -> None:
    root = fetch.sdist(
        "novas",
        "3.1.1.6",
        "196191ec67d088357342c88824286273fb1a5dfc96210a4f5e587aabc23d50a5",
    )
    names = ("novas", "novascon", "nutation", "solsys1", "readeph0", "eph_manager")
    declarations = second_file("""
void radec2vector(double ra, double dec, double dist, double vector[3]);
void spin(double angle, const double pos1[3], double pos2[3]);
#pragma jaxc scalar(year, month, day, hour)
void cal_date(double tjd, short *year, short *month, short *day, double *hour);
""")
    lib = jaxc.load([*(root / "Cdist" / f"{name}.c" for name in names), declarations])
    # Functions of numbers, at once.
    days = [
        datetime.date(1858, 11, 17),
        datetime.date(2000, 1, 1),
        datetime.date(2024, 2, 29),
    ]
    parts = np.array([(d.year, d.month, d.day) for d in days], dtype="int16").T
    julian = np.array([d.toordinal() for d in days]) + 1721424.5
    np.testing.assert_array_equal(lib.julian_date(*parts, 0.0), julian)
    turns = 0.7790572732640 + 1.00273781191135448 * (julian - 2451545)
    np.testing.assert_allclose(lib.era(julian, 0.0), 360 * (turns % 1), atol=1e-6)
    np.testing.assert_allclose(
        lib.norm_ang(np.array([-1.0, 7.0])), [2 * np.pi - 1, 7 % (2 * np.pi)]
    )
    # Functions of pointers, declared again.
    year, month, day, hour = lib.cal_date(julian)
    np.testing.assert_array_equal(np.stack([year, month, day]), parts)
    np.testing.assert_array_equal(hour, 0)
    hours, degrees = np.array([[0.0, 6.0, 12.0], [0.0, 30.0, 90.0]])
    vector = np.array(lib.radec2vector(hours, degrees, 2.0))
    np.testing.assert_allclose(vector, [[2, 0, 0], [0, 3**0.5, 1], [0, 0, 2]], atol=1e-15)
    turned = Rotation.from_euler("z", -40, degrees=True).apply(vector)
    np.testing.assert_allclose(lib.spin(40.0, vector), turned, atol=1e-15)
    # Functions of structs: asking for one says why it is not there.
    reason = (
        r"novas\.c:\d+: 'app_star' cannot be called from JAX: it has parameter 'star' "
        r"\(cat_entry \*star\) of type 'struct cat_entry'"
    )
    assert "app_star" not in lib
    with pytest.raises(AttributeError, match=reason):
        _ = lib.app_star
    with pytest.raises(KeyError, match=r"topo_star.*'struct cat_entry'"):
        _ = lib["topo_star"]
    assert "app_star: refused, it has parameter 'star'" in repr(lib)
    with pytest.raises(AttributeError, match="did you mean 'julian_date'"):
        _ = lib.julian_dat
