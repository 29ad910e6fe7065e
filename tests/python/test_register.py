"""jaxc.register hands over what is right and refuses the rest loudly, before XLA sees it."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np
import pytest

import jaxc
from jaxc.compiler import find_compiler
from jaxc.registration import api_version

SOURCE = Path(__file__).parent / "handlers.c"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("register") / "libhandlers.so"
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", f"-I{jaxc.include_dir()}"]
    find_compiler().run([*flags, str(SOURCE), "-o", str(out)], what="compiling handlers.c")
    return str(out)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return np.linspace(-0.5, 0.5, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def like(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def reference(x: Any, eps: float) -> Any:
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps)


def test_a_handler_of_a_library_is_called_by_its_target(path: str) -> None:
    jaxc.register("r_rms", path, symbol="Rms")
    x = array(8, 4)
    y = jax.jit(lambda x: jax.ffi.ffi_call("r_rms", like(x))(x, eps=np.float32(1)))(x)
    np.testing.assert_allclose(y, reference(x, 1), rtol=1e-5)


def test_the_name_is_the_symbol_when_none_is_given(path: str) -> None:
    jaxc.register("Rms", Path(path))
    x = array(3)
    y = jax.ffi.ffi_call("Rms", like(x))(x, eps=np.float32(1))
    np.testing.assert_allclose(y, reference(x, 1), rtol=1e-5)


@pytest.mark.parametrize("kind", ["library", "function", "capsule", "dictionary"])
def test_a_handler_comes_in_several_forms(path: str, kind: str) -> None:
    library = ctypes.CDLL(path)
    forms: dict[str, Any] = {
        "library": library,
        "function": library.Rms,
        "capsule": jax.ffi.pycapsule(library.Rms),
        "dictionary": {"execute": library.Rms},
    }
    symbol = "Rms" if kind == "library" else None
    jaxc.register(f"r_{kind}", forms[kind], symbol=symbol)
    x = array(2, 3)
    y = jax.ffi.ffi_call(f"r_{kind}", like(x))(x, eps=np.float32(1))
    np.testing.assert_allclose(y, reference(x, 1), rtol=1e-5)


def test_stages_and_the_type_of_the_state_are_found_by_themselves(path: str) -> None:
    library = ctypes.CDLL(path)
    jaxc.register("r_scale", path, symbol="Scale")
    x = array(5)
    f = jax.jit(lambda x: jax.ffi.ffi_call("r_scale", like(x))(x, scale=3))
    np.testing.assert_allclose(f(x), 3 * x)
    np.testing.assert_allclose(f(x), 3 * x)
    assert library.states_alive() == 1
    f.clear_cache()
    gc.collect()
    assert library.states_alive() == 0


def test_attributes_of_every_kind_arrive(path: str, x64: None) -> None:
    jaxc.register("r_kinds", path, symbol="Kinds")
    given = {
        "flag": True, "i8": np.int8(-8), "i16": np.int16(-16), "i32": np.int32(-32),
        "i64": -(2**40), "u8": np.uint8(200), "u16": np.uint16(60000),
        "u32": np.uint32(2**32 - 1), "u64": np.uint64(2**63 - 1), "f32": np.float32(0.5),
        "f64": 0.25, "hue": 2, "address": 4096, "text": "añ",
        "numbers": np.array([[7, 8], [9, 10]], np.int16), "inner": {"k": 5, "word": "four"},
    }  # fmt: skip
    call = jax.ffi.ffi_call("r_kinds", jax.ShapeDtypeStruct((19,), np.float64))
    expected = [
        1, -8, -16, -32, -(2.0**40), 200, 60000, 2**32 - 1, 2**31 - 1, 0.5, 0.25, 2, 4096, 3,
        ord("a"), 4, 7, 5, 4,
    ]  # fmt: skip
    np.testing.assert_array_equal(jax.jit(lambda: call(**given))(), expected)


def test_all_that_is_wrong_with_a_call_is_told_at_once(path: str, x64: None) -> None:
    jaxc.register("r_rms", path, symbol="Rms")
    call = jax.ffi.ffi_call("r_rms", jax.ShapeDtypeStruct((), np.int32))
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        call(np.ones(3), eps=1.0, k=1)
    assert str(error.value) == (
        "INVALID_ARGUMENT: Rms: argument 0 ('x') has dtype float64, expected float32; "
        "result 0 ('y') has dtype int32, expected float32; attribute 'eps' has type float64, "
        "expected float32; attribute 'k' is not expected"
    )


def test_the_same_handler_again_is_nothing_and_another_is_refused(path: str) -> None:
    jaxc.register("r_once", path, symbol="Rms")
    jaxc.register("r_once", path, symbol="Rms")
    jaxc.register("r_once", ctypes.CDLL(path), symbol="Rms")
    with pytest.raises(
        ValueError,
        match="register 'r_once': another handler, or this one before its file has changed, has this",
    ):
        jaxc.register("r_once", path, symbol="Scale")


def test_a_name_that_xla_has_from_elsewhere_is_refused(path: str) -> None:
    library = ctypes.CDLL(path)
    jax.ffi.register_ffi_target("r_else", jax.ffi.pycapsule(library.Rms), platform="cpu")
    with pytest.raises(
        ValueError, match=r"register 'r_else': XLA refuses 'Kinds' of .* on cpu"
    ):
        jaxc.register("r_else", path, symbol="Kinds")


@pytest.mark.parametrize("symbol", ["Newer", "Future"])
def test_a_handler_that_is_newer_than_the_runtime_is_refused(path: str, symbol: str) -> None:
    runtime = api_version()
    assert runtime is not None
    minor = {"Newer": 9, "Future": 6}[symbol]
    with pytest.raises(ValueError, match="needs XLA FFI API") as error:
        jaxc.register(f"r_{symbol}", path, symbol=symbol)
    assert str(error.value) == (
        f"register 'r_{symbol}': '{symbol}' of {path} needs XLA FFI API 0.{minor}, but jaxlib "
        f"{jaxlib.__version__} has 0.{runtime[1]} on cpu; build it for the older API or use a "
        "newer jaxlib"
    )
    jaxc.register(f"r_{symbol}", path, symbol="Rms")  # nothing was registered


def test_a_plain_function_is_refused_and_not_called(path: str) -> None:
    library = ctypes.CDLL(path)
    with pytest.raises(ValueError, match=r"'add' of .* is no XLA FFI handler: ") as error:
        jaxc.register("r_add", path, symbol="add")
    assert "does not answer" in str(error.value)
    assert library.calls_of_add() == 0


def test_a_function_that_crashes_on_a_frame_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"'crash' of .* is no XLA FFI handler"):
        jaxc.register("r_crash", path, symbol="crash")


def test_a_missing_symbol_is_told_with_what_is_there(path: str) -> None:
    with pytest.raises(ValueError, match="no symbol") as error:
        jaxc.register("r_missing", path, symbol="Rmss")
    assert str(error.value) == (
        f"{path} has no symbol 'Rmss'; handlers in it: Beyond, Copy, Fails, Future, Kinds, OnCuda, Ordered, Rms, "
        "Scale, Scribbles"
    )


def test_a_library_of_kernels_is_for_load() -> None:
    library = jaxc.compile("void twice(int n, const float x[n], float y[n]) {}")
    with pytest.raises(ValueError, match=r"it is a kernel library for jaxc.load, with twice"):
        jaxc.register("r_twice", library.path, symbol="other")
    with pytest.raises(ValueError, match=r"is a C function and no handler: jaxc.load\("):
        jaxc.register("r_twice", library.path, symbol="twice")


def test_a_handler_for_another_platform_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"'OnCuda' of .* is written for cuda, not for cpu"):
        jaxc.register("r_cuda", path, symbol="OnCuda")
    with pytest.raises(ValueError, match="platform 'tpu' is not known, expected one of cpu,"):
        jaxc.register("r_tpu", path, "tpu", symbol="Rms")
    jaxc.register("r_cuda", path, "cuda", symbol="OnCuda")  # waits for the platform


def test_what_is_no_handler_at_all_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"a handler is the path of a library, .* not int"):
        jaxc.register("r_int", 3)
    with pytest.raises(ValueError, match="of which execute must be there; got prepare"):
        jaxc.register("r_stage", {"prepare": ctypes.CDLL(path).Rms})
    with pytest.raises(OSError, match=r"^cannot load the handler's library .*nothing\.so: "):
        jaxc.register("r_file", tmp_path / "nothing.so")


@pytest.mark.parametrize("code", range(1, 17))
def test_each_code_arrives_with_the_same_text_every_time(path: str, code: int) -> None:
    jaxc.register("r_fails", path, symbol="Fails")
    x = array(2, 3)

    def call(x: Any) -> Any:
        return jax.ffi.ffi_call("r_fails", like(x))(x, code=code)

    texts = []
    for f in (call, call, jitted := jax.jit(call), jitted):
        with pytest.raises(jax.errors.JaxRuntimeError) as error:
            jax.block_until_ready(f(x))
        texts.append(str(error.value))
    assert texts == [f"{jaxc.host.CODES[code]}: Fails: code {code} of 2 axes"] * 4


DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e5m2",
    "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e4m3fnuz",
]  # fmt: skip


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 5)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_through(path: str, x64: None, dtype: str, shape: Any) -> None:
    jaxc.register("r_copy", path, symbol="Copy")
    x = jax.numpy.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    y = jax.ffi.ffi_call("r_copy", like(x))(x)
    assert y.dtype == x.dtype
    assert np.asarray(y).tobytes() == np.asarray(x).tobytes()


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_types_below_a_byte_are_named(path: str, dtype: str) -> None:
    jaxc.register("r_copy", path, symbol="Copy")
    x = jax.numpy.arange(4).astype(dtype)
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=f"Copy: cannot copy {dtype} of 4 to {dtype} of 4"
    ):
        jax.ffi.ffi_call("r_copy", like(x))(x)


def test_an_operand_that_xla_holds_transposed_arrives_row_major(path: str) -> None:
    jaxc.register("r_copy", path, symbol="Copy")
    x = array(5, 2, 3)
    f = jax.jit(lambda x: jax.ffi.ffi_call("r_copy", like(x.mT))((x * 2).mT))
    np.testing.assert_array_equal(f(x), (x * 2).swapaxes(1, 2))


def test_a_process_on_one_core_finishes_many_calls_in_flight(path: str) -> None:
    script = f"""
import os
os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})
import jax, jaxc, numpy as np
jaxc.register("rms", {path!r}, symbol="Rms")
x = np.ones((1024, 256), np.float32)
f = jax.jit(lambda x: jax.ffi.ffi_call("rms", jax.ShapeDtypeStruct(x.shape, x.dtype))(x + 1, eps=np.float32(1)))
ys = [f(x) for _ in range(200)]
print(np.asarray(sum(ys)).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(1024, 256)\n", "")
