"""jaxlib's own CPU handlers, which wrap SciPy's LAPACK, called by jaxc.host.

They take matrices by columns: a matrix has its shape, and its memory is that of the
transpose. JAX asks for that layout; without JAX the caller lays the memory out so.
"""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
import scipy.linalg

import jaxc

Array = np.ndarray[Any, Any]
TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
TOLERANCE = {"s": 2e-4, "d": 1e-11, "c": 2e-4, "z": 1e-11}


@pytest.fixture(scope="module")
def handlers() -> dict[str, Any]:
    lapack = pytest.importorskip("jaxlib.cpu._lapack", reason="jaxlib has no cpu._lapack")
    if not hasattr(lapack, "initialize") or not hasattr(lapack, "registrations"):
        pytest.skip(f"jaxlib.cpu._lapack has other names: {', '.join(dir(lapack))}")
    lapack.initialize()  # finds SciPy's LAPACK, as JAX's lowering rules do
    out = lapack.registrations()
    assert isinstance(out, dict)
    return out


def find(handlers: dict[str, Any], name: str) -> Any:
    target = f"lapack_{name}_ffi"
    if target not in handlers:
        pytest.skip(f"jaxlib has no {target}; it has {', '.join(sorted(handlers))}")
    return handlers[target]


def sample(type_: str, *shape: int) -> Array:
    dtype = np.dtype(TYPES[type_])
    random = np.random.default_rng(list(shape))
    out = random.normal(size=shape)
    if dtype.kind == "c":
        out = out + 1j * random.normal(size=shape)
    return out.astype(dtype)


def positive(type_: str, *shape: int) -> Array:
    a = sample(type_, *shape)
    return np.asarray(a @ a.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1], dtype=a.dtype))


def columns(x: Array) -> Array:
    return np.ascontiguousarray(x.swapaxes(-1, -2)).reshape(x.shape)


def rows(x: Array) -> Array:
    *batch, m, n = x.shape
    return x.reshape(*batch, n, m).swapaxes(-1, -2)


def like(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def letter(text: str) -> np.uint8:
    """How these handlers take LAPACK's options."""
    return np.uint8(ord(text))


def call(handler: Any, *arguments: Array, results: list[Any], **attributes: Any) -> Any:
    out = jaxc.host.call(handler, *arguments, results=results, attributes=attributes)
    return out[0] if len(out) == 1 else out


@pytest.mark.parametrize("type_", TYPES)
def test_getrf_factors(handlers: dict[str, Any], type_: str) -> None:
    a = sample(type_, 5, 5)
    lu, pivots, info = call(
        find(handlers, f"{type_}getrf"), columns(a),
        results=[a, like((5,), np.int32), like((), np.int32)],
    )  # fmt: skip
    expected, expected_pivots = scipy.linalg.lu_factor(a)
    np.testing.assert_allclose(rows(lu), expected, atol=TOLERANCE[type_])
    np.testing.assert_array_equal(pivots - 1, expected_pivots)
    assert info == 0


def test_getrf_factors_each_matrix_of_a_batch(handlers: dict[str, Any]) -> None:
    a = sample("d", 2, 3, 4, 6)
    lu, pivots, info = call(
        find(handlers, "dgetrf"), columns(a),
        results=[a, like((2, 3, 4), np.int32), like((2, 3), np.int32)],
    )  # fmt: skip
    for i, j in np.ndindex(2, 3):
        expected, expected_pivots = scipy.linalg.lu_factor(a[i, j])
        np.testing.assert_allclose(rows(lu)[i, j], expected, atol=1e-11)
        np.testing.assert_array_equal(pivots[i, j] - 1, expected_pivots)
    assert not info.any()


def test_a_handler_of_jaxlib_gives_what_it_gives_in_jax(
    handlers: dict[str, Any], x64: None
) -> None:
    a = sample("d", 3, 6, 6)
    lu, pivots, _ = call(
        find(handlers, "dgetrf"), columns(a),
        results=[a, like((3, 6), np.int32), like((3,), np.int32)],
    )  # fmt: skip
    expected, expected_pivots, _ = jax.lax.linalg.lu(a)
    np.testing.assert_array_equal(rows(lu), expected)
    np.testing.assert_array_equal(pivots - 1, expected_pivots)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_potrf_factors(handlers: dict[str, Any], type_: str, triangle: str) -> None:
    a = positive(type_, 4, 4)
    factor, info = call(
        find(handlers, f"{type_}potrf"), columns(a), results=[a, like((), np.int32)],
        uplo=letter(triangle),
    )  # fmt: skip
    lower = np.linalg.cholesky(a)
    if triangle == "L":
        np.testing.assert_allclose(np.tril(rows(factor)), lower, atol=TOLERANCE[type_])
    else:
        np.testing.assert_allclose(np.triu(rows(factor)), lower.conj().T, atol=TOLERANCE[type_])
    assert info == 0


def test_potrf_says_which_minor_is_not_positive(handlers: dict[str, Any]) -> None:
    a = np.diag([1.0, 2.0, -3.0])
    _, info = call(
        find(handlers, "dpotrf"), columns(a), results=[a, like((), np.int32)], uplo=letter("L")
    )
    assert info == 3


@pytest.mark.parametrize("type_", TYPES)
def test_geqrf_and_its_q_give_the_matrix_back(handlers: dict[str, Any], type_: str) -> None:
    a = sample(type_, 6, 4)
    packed, taus = call(
        find(handlers, f"{type_}geqrf"), columns(a), results=[a, like((4,), a.dtype)]
    )
    make_q = {"s": "sorgqr", "d": "dorgqr", "c": "cungqr", "z": "zungqr"}[type_]
    q = rows(call(find(handlers, make_q), packed, taus, results=[a]))
    np.testing.assert_allclose(q @ np.triu(rows(packed)[:4]), a, atol=TOLERANCE[type_])
    np.testing.assert_allclose(q.conj().T @ q, np.eye(4), atol=TOLERANCE[type_])


def test_syevd_with_two_attributes_and_work_memory(handlers: dict[str, Any]) -> None:
    a = positive("d", 5, 5)
    vectors, values, info = call(
        find(handlers, "dsyevd"), columns(a),
        results=[a, like((5,), np.float64), like((), np.int32)],
        mode=letter("V"), uplo=letter("L"),
    )  # fmt: skip
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a), atol=1e-11)
    v = rows(vectors)
    np.testing.assert_allclose(v @ np.diag(values) @ v.T, a, atol=1e-10)
    assert info == 0


@pytest.mark.parametrize("transposed", ["N", "T"])
def test_trsm_with_four_attributes(handlers: dict[str, Any], transposed: str) -> None:
    a, b = positive("d", 4, 4), sample("d", 4, 3)
    x = call(
        find(handlers, "dtrsm"), columns(a), columns(b), results=[b],
        side=letter("L"), uplo=letter("L"), trans_x=letter(transposed), diag=letter("N"),
    )  # fmt: skip
    expected = scipy.linalg.solve_triangular(a, b, trans=transposed, lower=True)
    np.testing.assert_allclose(rows(x), expected, atol=1e-11)


def test_geev_of_a_real_matrix_has_complex_vectors(handlers: dict[str, Any]) -> None:
    a = sample("d", 4, 4)
    compute, leave = letter("V"), letter("N")
    real, imaginary, _, right, info = call(
        find(handlers, "dgeev"), columns(a),
        results=[like((4,), np.float64)] * 2 + [like((4, 4), np.complex128)] * 2
        + [like((), np.int32)],
        compute_left=leave, compute_right=compute,
    )  # fmt: skip
    values = real + 1j * imaginary
    np.testing.assert_allclose(a @ rows(right), rows(right) * values, atol=1e-11)
    np.testing.assert_allclose(np.sort(values), np.sort(np.linalg.eigvals(a)), atol=1e-11)
    assert info == 0


def test_gesdd_decomposes(handlers: dict[str, Any]) -> None:
    a = sample("d", 5, 3)
    _, s, u, vt, info = call(
        find(handlers, "dgesdd"), columns(a),
        results=[a, like((3,), np.float64), like((5, 3), np.float64),
                 like((3, 3), np.float64), like((), np.int32)],
        mode=letter("S"),
    )  # fmt: skip
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), atol=1e-11)
    np.testing.assert_allclose(rows(u) @ np.diag(s) @ rows(vt), a, atol=1e-11)
    assert info == 0


def test_gtsv_with_four_arguments_and_five_results(handlers: dict[str, Any]) -> None:
    lower, middle, upper = sample("d", 6), 5 + sample("d", 7)[:6], sample("d", 8)[:6]
    b = sample("d", 6, 2)
    handler = find(handlers, "dgtsv")
    *_, x, info = call(
        handler, lower, middle, upper, columns(b),
        results=[lower, middle, upper, b, like((), np.int32)],
    )  # fmt: skip
    dense = np.diag(middle) + np.diag(upper[:-1], 1) + np.diag(lower[1:], -1)
    np.testing.assert_allclose(rows(x), np.linalg.solve(dense, b), atol=1e-11)
    assert info == 0


def test_wrong_calls_are_refused_by_the_handler(handlers: dict[str, Any]) -> None:
    handler = find(handlers, "dpotrf")
    a = positive("d", 3, 3)
    results = [a, like((), np.int32)]
    with pytest.raises(jaxc.host.HostError, match="Wrong number of attributes: expected 1 but"):
        call(handler, a, results=results)
    with pytest.raises(jaxc.host.HostError, match="Wrong number of results: expected 2 but"):
        call(handler, a, results=[a], uplo=letter("L"))
    with pytest.raises(jaxc.host.HostError) as error:
        call(handler, a.astype(np.float32), results=results, uplo=1)
    text = str(error.value)
    assert "Wrong buffer dtype: expected F64 but got F32" in text
    assert re.search("Wrong scalar data type: expected U?S?8 but got S64", text)
    assert error.value.code == "INVALID_ARGUMENT"


def test_register_takes_a_capsule_of_jaxlib(handlers: dict[str, Any], x64: None) -> None:
    jaxc.register("foreign_getrf", find(handlers, "dgetrf"))
    a = sample("d", 4, 4)
    lu, pivots, info = jax.ffi.ffi_call(
        "foreign_getrf", [a, like((4,), np.int32), like((), np.int32)],
        input_layouts=[(1, 0)], output_layouts=[(1, 0), (0,), ()],
    )(a)  # fmt: skip
    expected, expected_pivots = scipy.linalg.lu_factor(a)
    np.testing.assert_allclose(lu, expected, atol=1e-11)
    np.testing.assert_array_equal(pivots - 1, expected_pivots)
    assert info == 0
