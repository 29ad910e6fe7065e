"""examples/overload: one Python function over kernels that are written once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxc

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "overload"
COMPILERS = ("gcc", "clang")


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    return name


@pytest.fixture
def lib(compiler: str) -> jaxc.Library:
    return jaxc.load(FOLDER / "axpy.c", compiler=compiler)


def dtypes(lib: jaxc.Library) -> list[str]:
    return ["float32", "float64", *(["float16"] if "axpy_half" in lib else [])]


def test_gcc_has_half_precision() -> None:
    """Else the tests of it would be left out in silence."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    assert "axpy_half" in jaxc.load(FOLDER / "axpy.c", compiler="gcc")


@pytest.mark.usefixtures("x64")
def test_the_dtype_picks(lib: jaxc.Library) -> None:
    for dtype in dtypes(lib):
        x, y = np.arange(6, dtype=dtype).reshape(2, 3), np.ones(3, dtype)
        for function in (lib.axpy, jax.jit(lib.axpy), jax.vmap(lib.axpy, (None, 0, None))):
            got = function(2.0, x, y)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, 2 * x + y)


def test_the_error_lists_what_there_is(lib: jaxc.Library) -> None:
    with pytest.raises(TypeError) as caught:
        lib.axpy(1, np.arange(3, dtype="int32"), np.arange(3, dtype="int32"))
    first, *options = str(caught.value).splitlines()
    assert first == "axpy: no overload for (int, int32, int32); there are:"
    assert options[0].strip() == (
        "void axpy_float(int n, float a, const float x[n], const float y[n], float z[n])"
    )
    assert len(options) == len(dtypes(lib))
    with pytest.raises(TypeError, match=r"no overload for \(int, float32, float64\)"):
        lib.axpy(1, np.ones(3, "float32"), np.ones(3, "float64"))


@pytest.mark.usefixtures("x64")
def test_each_has_its_own_derivatives(lib: jaxc.Library) -> None:
    rng = np.random.default_rng(0)

    def loss(f: Any) -> Any:
        return lambda a, x, y: jnp.sum(f(a, x, y) ** 2)

    for dtype in dtypes(lib):
        rtol = {"float16": 2e-2, "float32": 1e-5}.get(dtype, 1e-12)
        x, y, d_x, d_y = rng.uniform(0.5, 1, (4, 5)).astype(dtype)
        a = np.asarray(1.5, dtype)
        ours = jax.grad(loss(lib.axpy), (0, 1, 2))(a, x, y)
        theirs = jax.grad(loss(lambda a, x, y: a * x + y), (0, 1, 2))(a, x, y)
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(one, other, rtol)
        got = jax.jvp(lib.axpy, (a, x, y), (a, d_x, d_y))[1]
        np.testing.assert_allclose(got, a * x + a * d_x + d_y, rtol)


@pytest.mark.usefixtures("x64")
def test_a_template_file(compiler: str) -> None:
    lib = jaxc.load(FOLDER / "norm.c", compiler=compiler)
    assert list(lib) == ["norm_float", "norm_double", "norm"]
    for dtype in ("float32", "float64"):
        x = np.arange(12, dtype=dtype).reshape(3, 4)
        got = lib.norm(x)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, np.linalg.norm(x, axis=-1), 1e-6)


def test_a_pragma_of_a_macro_s_argument(compiler: str) -> None:
    lib = jaxc.compile(
        """
        #define TEXT(x) #x
        #define PRAGMA(x) _Pragma(TEXT(x))
        #define SCALE(T)                                                                 \\
          PRAGMA(jaxc overload(scale) nondifferentiable(a))                              \\
          void scale_##T(int n, T a, const T x[n], T y[n]) {                             \\
            for (int i = 0; i < n; i++) y[i] = a * x[i];                                 \\
          }                                                                              \\
          _Pragma(TEXT(jaxc hide)) T hidden_##T(T x) { return x; }
        SCALE(float)
        SCALE(double)
        """,
        compiler=compiler,
    )
    assert list(lib) == ["scale_float", "scale_double", "scale"]
    assert lib.scale(2.0, np.ones(2, "float32")).dtype == "float32"
    assert lib.scale_float.description.parameters[1].nondifferentiable


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.c")), ids=lambda file: file.name)
def test_compiles_without_warnings(file: Path, compiler: str) -> None:
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    command = [compiler, *flags, "-Wno-unknown-pragmas", "-O2", "-c", str(file), "-o"]
    done = subprocess.run([*command, "/dev/null"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.name)
def test_layout(file: Path) -> None:
    lines = file.read_text(encoding="ascii").splitlines()
    assert lines[0].startswith(f"/* {file.name}: ")
    assert "SPDX-License-Identifier: Apache-2.0" in lines[1]
    assert max(map(len, lines)) <= 90
    assert not any(line != line.rstrip() or "\t" in line for line in lines)
