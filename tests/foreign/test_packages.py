"""Handlers that packages of PyPI ship as binaries, called by jaxc.host without the packages'
own Python, and compared with NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse

import jaxc

Array = np.ndarray[Any, Any]
Load = Callable[[str, str, str], ModuleType]


def like(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


# ---- jax-finufft: Fourier transforms of points that lie anywhere ----


@pytest.fixture(scope="module")
def finufft(extension: Load) -> dict[str, Any]:
    out = extension("jax-finufft", "1.3.1", "jax_finufft_cpu").registrations()
    assert isinstance(out, dict)
    return out


def finufft_attributes(
    source: Array, points: Array, modes: list[int], eps: Any
) -> dict[str, Any]:
    numbers = {
        "iflag": 1,
        "n_tot": source.shape[0],
        "n_transf": source.shape[1],
        "n_j": points.shape[1],
        "modeord": 0, "debug": 0, "spread_debug": 0, "showwarn": 0, "nthreads": 1,
        "fftw": 64, "spread_sort": 2, "spread_kerevalmeth": 1, "spread_kerpad": 1,
        "spread_thread": 0, "maxbatchsize": 0, "spread_nthr_atomic": -1,
        "spread_max_sp_size": 0,
    }  # fmt: skip
    sizes = [*modes, 0, 0][:3]
    numbers |= {f"n_k_{i + 1}": size for i, size in enumerate(sizes)}
    return {**numbers, "eps": eps, "upsampfac": 0.0}


def sample(random: np.random.Generator, *shape: int) -> Array:
    return random.normal(size=shape) + 1j * random.normal(size=shape)


@pytest.mark.parametrize(
    ("suffix", "dtype", "tolerance"), [("", np.float64, 1e-10), ("f", np.float32, 1e-4)]
)
def test_a_transform_from_points_to_modes(
    finufft: dict[str, Any], suffix: str, dtype: Any, tolerance: float
) -> None:
    random = np.random.default_rng(0)
    points = random.uniform(-np.pi, np.pi, size=(1, 50)).astype(dtype)
    complex_ = np.result_type(dtype, np.complex64)
    source = sample(random, 1, 2, 50).astype(complex_)  # two transforms with the same points
    eps = 1e-12 if suffix == "" else np.float32(1e-6)
    (out,) = jaxc.host.call(
        finufft[f"nufft1d1{suffix}"], source, points, results=like((1, 2, 16), complex_),
        attributes=finufft_attributes(source, points, [16], eps),
    )  # fmt: skip
    waves = np.exp(1j * np.outer(points[0].astype(np.float64), np.arange(-8, 8)))
    np.testing.assert_allclose(out, source @ waves, rtol=0, atol=tolerance * 50)


def test_a_transform_from_modes_to_points_of_a_plane(finufft: dict[str, Any]) -> None:
    random = np.random.default_rng(1)
    x, y = random.uniform(-np.pi, np.pi, size=(2, 1, 40))
    source = sample(random, 1, 1, 10, 12)
    (out,) = jaxc.host.call(
        finufft["nufft2d2"], source, y, x, results=like((1, 1, 40), np.complex128),
        attributes=finufft_attributes(source, x, [12, 10], 1e-12),
    )  # fmt: skip
    by_x = np.exp(1j * np.outer(x[0], np.arange(-5, 5)))
    by_y = np.exp(1j * np.outer(y[0], np.arange(-6, 6)))
    expected = np.einsum("jk,kl,jl->j", by_x, source[0, 0], by_y)
    np.testing.assert_allclose(out[0, 0], expected, rtol=0, atol=1e-9)


def test_a_transform_is_refused_with_options_left_out(finufft: dict[str, Any]) -> None:
    points, source = np.zeros((1, 5)), np.zeros((1, 1, 5), np.complex128)
    attributes = finufft_attributes(source, points, [4], 1e-6)
    del attributes["nthreads"]
    with pytest.raises(jaxc.host.HostError, match="Wrong number of attributes: expected 22"):
        jaxc.host.call(
            finufft["nufft1d1"], source, points, results=like((1, 1, 4), np.complex128),
            attributes=attributes,
        )  # fmt: skip


# ---- klujax: sparse linear systems by SuiteSparse's KLU ----


@pytest.fixture(scope="module")
def klu(extension: Load) -> ModuleType:
    return extension("klujax", "0.5.2", "klujax_cpp")


Sparse = tuple[Array, Array, Array, Array]


def system(dtype: Any = np.float64, count: int = 2) -> Sparse:
    """Rows, columns, and values of `count` matrices of one pattern; the first is dense too."""
    random = np.random.default_rng(3)
    pattern = scipy.sparse.random(12, 12, density=0.2, random_state=4) + scipy.sparse.eye(12)
    coo = scipy.sparse.coo_array(pattern)
    i, j = coo.coords
    values = random.normal(size=(count, coo.nnz)) + 4 * (i == j)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.normal(size=values.shape)
    dense = np.zeros((count, 12, 12), dtype)
    for k in range(count):
        dense[k, i, j] = values[k]
    return i.astype(np.int32), j.astype(np.int32), values.astype(dtype), dense


@pytest.mark.parametrize(("name", "dtype"), [("f64", np.float64), ("c128", np.complex128)])
def test_a_sparse_product(klu: ModuleType, name: str, dtype: Any) -> None:
    i, j, values, dense = system(dtype)
    x = np.random.default_rng(5).normal(size=(2, 12, 3)).astype(dtype)
    (out,) = jaxc.host.call(getattr(klu, f"dot_{name}")(), i, j, values, x, results=x)
    np.testing.assert_allclose(out, dense @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "dtype"), [("f64", np.float64), ("c128", np.complex128)])
def test_a_sparse_system_is_solved(klu: ModuleType, name: str, dtype: Any) -> None:
    i, j, values, dense = system(dtype)
    b = np.random.default_rng(6).normal(size=(2, 12, 3)).astype(dtype)
    (x,) = jaxc.host.call(getattr(klu, f"solve_{name}")(), i, j, values, b, results=b)
    np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=1e-9, atol=1e-9)


def test_a_handle_goes_from_one_handler_to_the_next(klu: ModuleType) -> None:
    i, j, values, dense = system()
    b = np.random.default_rng(8).normal(size=(2, 12, 2))
    (raw,) = jaxc.host.call(klu.analyze(), i, j, np.int32(12), results=like((), np.uint64))
    owner = klu.KLUSymbolic(int(raw))  # frees it
    (x,) = jaxc.host.call(klu.solve_with_symbol_f64(), i, j, values, b, raw, results=b)
    (y,) = jaxc.host.call(klu.tsolve_with_symbol_f64(), i, j, values, b, raw, results=b)
    del owner
    np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=1e-9, atol=1e-9)
    transposed = dense.swapaxes(-1, -2)
    np.testing.assert_allclose(y, np.linalg.solve(transposed, b), rtol=1e-9, atol=1e-9)


def test_a_sparse_system_is_refused_with_another_type(klu: ModuleType) -> None:
    i, j, values, _ = system()
    b = np.zeros((2, 12, 1))
    with pytest.raises(jaxc.host.HostError) as error:
        jaxc.host.call(
            klu.solve_f64(), i.astype(np.int64), j, values.astype(np.float32), b, results=b
        )
    text = str(error.value)
    assert "expected S32 but got S64" in text
    assert "expected F64 but got F32" in text
    with pytest.raises(jaxc.host.HostError, match=r"x is not 3D\."):
        jaxc.host.call(klu.solve_f64(), i, j, values, b[0], results=b)


def test_a_solver_of_the_package_is_called_by_jax(klu: ModuleType, x64: None) -> None:
    i, j, values, dense = system()
    b = np.random.default_rng(7).normal(size=(2, 12, 1))
    jaxc.register("foreign_klu", klu.solve_f64())
    x = jax.jit(jax.ffi.ffi_call("foreign_klu", like(b.shape, b.dtype)))(i, j, values, b)
    np.testing.assert_allclose(x, np.linalg.solve(dense, b), rtol=1e-9, atol=1e-9)
