"""jaxc.host calls any handler without XLA and finds what it does wrong."""

from __future__ import annotations

import dataclasses
import enum
import gc
import tracemalloc
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxc
from jaxc import _jaxc, host
from jaxc.compiler import find_compiler

SOURCE = Path(__file__).parent / "handlers.c"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("host") / "libhandlers.so"
    flags = ["-std=c11", "-O2", "-shared", "-fPIC", f"-I{jaxc.include_dir()}"]
    find_compiler().run([*flags, str(SOURCE), "-o", str(out)], what="compiling handlers.c")
    return str(out)


@pytest.fixture(scope="module")
def lib() -> jaxc.Library:
    return jaxc.compile("""
#include <math.h>
void rms(int n, const float x[n], float eps, float y[n]) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  for (int i = 0; i < n; i++) y[i] = x[i] / sqrtf(s / n + eps);
}
int stops(int n, const double x[n], double y[n]) { return 4; }
""")


def array(*shape: int) -> np.ndarray[Any, Any]:
    return np.linspace(-0.5, 0.5, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def test_a_handler_of_a_library_is_called(path: str) -> None:
    x = array(8, 4)
    (y,) = host.call(path, x, symbol="Rms", results=x, attributes={"eps": np.float32(1)})
    np.testing.assert_allclose(y, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1), rtol=1e-5)


def test_a_function_is_called_as_xla_calls_it(lib: jaxc.Library) -> None:
    x = array(3, 5)
    (y,) = host.call(lib.rms, x, np.float32(0.1))
    np.testing.assert_array_equal(y, jax.jit(lib.rms)(x, 0.1))
    with pytest.raises(TypeError, match="rms: its results are known"):
        host.call(lib.rms, x, np.float32(0.1), results=x)


def test_statics_of_every_kind_are_sent() -> None:
    source = """
#include <complex.h>
#include <stdint.h>
#include <string.h>
#pragma jaxc static(b, k, u, z, s)
void f(_Bool b, int k, uint64_t u, double complex z, const char *s, int n, double y[n]) {
  y[0] = b; y[1] = k; y[2] = (double)(u >> 60); y[3] = cimag(z); y[4] = (double)strlen(s);
}
"""
    f = jaxc.compile(source).f
    given = {"b": True, "k": -3, "u": 2**63, "z": 1 + 2j, "s": "four", "n": 5}
    (y,) = host.call(f, attributes=given)
    np.testing.assert_array_equal(y, [1, -3, 8, 2, 4])


@pytest.mark.parametrize("minor", range(1, 6))
def test_every_version_of_the_api_gives_the_same(path: str, minor: int) -> None:
    x = array(6)
    runtime = host.Runtime(minor=minor)
    for symbol, attributes, expected in (
        ("Scale", {"scale": 3}, 3 * x),
        ("Copy", {}, x),
    ):
        (y,) = host.call(
            path, x, symbol=symbol, results=x, attributes=attributes, runtime=runtime
        )
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_a_state_lives_as_long_as_the_call_site(path: str, platform: str) -> None:
    import ctypes

    x = array(3)
    runtime = host.Runtime(platform=platform)
    host.call(path, x, symbol="Scale", results=x, attributes={"scale": 2}, runtime=runtime)
    assert ctypes.CDLL(path).states_alive() == 0


def test_the_error_of_a_handler_has_its_code_and_text(path: str, lib: jaxc.Library) -> None:
    x = array(2, 3)
    with pytest.raises(host.HostError, match=r"^Fails: code 11 of 2 axes$") as error:
        host.call(path, x, symbol="Fails", results=x, attributes={"code": 11})
    assert error.value.code == "OUT_OF_RANGE"
    with pytest.raises(host.HostError, match=r"stops: returned status 4 \(batch row 0 of 2\)"):
        host.call(lib.stops, x.astype(np.float64))


def test_a_write_outside_of_a_result_is_told(path: str) -> None:
    x = array(4)
    attributes: dict[str, Any] = {"scale": 0}
    host.call(path, x, symbol="Beyond", results=x, attributes=attributes)
    attributes["scale"] = 1
    with pytest.raises(host.HostError, match="writes outside of result 0") as error:
        host.call(path, x, symbol="Beyond", results=x, attributes=attributes)
    assert error.value.code == "DATA_LOSS"


def test_a_write_into_an_argument_is_told(path: str) -> None:
    x = array(4)
    with pytest.raises(host.HostError, match=r"^argument 0 was written$"):
        host.call(path, x, symbol="Scribbles", results=x)


def test_a_result_that_nobody_wrote_is_told(path: str) -> None:
    x = array(4)
    with pytest.raises(host.HostError, match=r"^result 0 was not written$"):
        host.call(path, x, symbol="Fails", results=x, attributes={"code": 0})


def test_what_is_no_handler_is_not_called(path: str) -> None:
    with pytest.raises(ValueError, match=r"'crash' of .* is no XLA FFI handler"):
        host.call(path, array(4), symbol="crash", results=array(4))


def test_a_handler_of_a_gpu_is_not_taken_for_one_of_a_cpu(path: str) -> None:
    x = array(4)
    attributes = {"eps": np.float32(1)}
    with pytest.raises(ValueError, match=r"written for cuda: call it with runtime=Runtime\("):
        host.call(path, x, symbol="OnCuda", results=x, attributes=attributes)
    host.call(
        path, x, symbol="OnCuda", results=x, attributes=attributes,
        runtime=host.Runtime(platform="gpu"),
    )  # fmt: skip


def test_a_library_that_was_built_again_is_loaded_again(tmp_path: Path) -> None:
    x, out = array(3), tmp_path / "libscale.so"
    source = """
#include <jaxc/jaxc.h>
typedef struct { JAXC_VIEW(const float) x; JAXC_VIEW(float) y; } call;
static const jaxc_field fields[] = {JAXC_ARGUMENT(call, x, 1), JAXC_RESULT(call, y, 1)};
static jaxc_status run(jaxc_context *context, const void *data) {
  const call *c = data;
  (void)context;
  for (int64_t i = 0; i < c->x.count; i++) c->y.data[i] = FACTOR * c->x.data[i];
  return JAXC_OK;
}
JAXC_HANDLER(Scale, call, fields, .execute = run);
"""
    for factor in (2, 3, 4):
        flags = ["-x", "c", f"-DFACTOR={factor}", "-shared", "-fPIC"]
        flags += [f"-I{jaxc.include_dir()}", "-", "-o", str(out)]
        find_compiler().run(flags, what="compiling", text=source)
        (y,) = host.call(out, x, symbol="Scale", results=x)
        np.testing.assert_array_equal(y, factor * x)
        name = "changing_scale"
        if factor == 2:
            jaxc.register(name, out, symbol="Scale")
            continue
        with pytest.raises(ValueError, match="or this one before its file has changed, has"):
            jaxc.register(name, out, symbol="Scale")


def test_the_names_of_parameters_are_told_for_a_function() -> None:
    f = jaxc.compile(
        "void f(int n, const float x[n], float y[n]) { for (int i = 0; i <= n; i++) y[i] = 0; }"
    ).f
    with pytest.raises(host.HostError, match="writes outside of 'y'"):
        host.call(f, array(4))


def test_numbers_are_sent_with_the_types_that_jax_gives_them() -> None:
    colour = enum.IntEnum("colour", {"RED": 7})
    encoded = host.encode(
        {"a": True, "b": 3, "c": 0.5, "d": 1j, "e": np.float64(2), "f": np.complex128(1j),
         "g": np.bool_(True), "h": colour.RED, "i": np.float32(1), "j": np.int8([1, 2])}
    )  # fmt: skip
    assert [(kind, dtype) for _, kind, dtype, _ in encoded] == [
        (3, 1), (3, 5), (3, 12), (3, 18), (3, 12), (3, 18), (3, 1), (3, 5), (3, 11), (1, 2)
    ]  # fmt: skip
    assert encoded[7][3] == np.int64(7).tobytes()


def test_tokens_are_none(path: str) -> None:
    x = array(3)
    (y,) = host.call(path, None, x, symbol="Ordered", results=[None, x])
    np.testing.assert_array_equal(y, x)


def test_attributes_that_cannot_be_sent_are_refused(path: str) -> None:
    x = array(3)
    for value, what in (
        ([1, 2], "attribute 'eps' has type list, expected a number"),
        (np.array("text"), "attribute 'eps' has dtype <U4, which XLA does not have"),
    ):
        with pytest.raises(TypeError, match=what):
            host.call(path, x, symbol="Rms", results=x, attributes={"eps": value})
    with pytest.raises(TypeError, match="an argument has dtype object"):
        host.call(path, np.array([None]), symbol="Rms", results=x)
    with pytest.raises(TypeError, match="attribute 'eps' has dtype float16, which JAX cannot"):
        host.call(path, x, symbol="Rms", results=x, attributes={"eps": np.float16(1)})
    with pytest.raises(OverflowError, match="attribute 'eps' is 9223372036854775808, which no"):
        host.call(path, x, symbol="Rms", results=x, attributes={"eps": 2**63})
    with pytest.raises(TypeError, match="the attribute name 1 is no string"):
        host.call(path, x, symbol="Rms", results=x, attributes={1: 2})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="result 0 is 3, expected something with a shape"):
        host.call(path, x, symbol="Rms", results=3)
    with pytest.raises(ValueError, match="platform is 'cpu' or 'gpu', not 'tpu'"):
        host.Runtime(platform="tpu")


def test_a_handler_by_symbol_is_needed(path: str) -> None:
    with pytest.raises(ValueError, match="say which handler by symbol="):
        host.call(path, array(3), results=array(3))


@pytest.mark.parametrize(
    "runtime",
    [
        host.Runtime(unknown_extensions=3),
        host.Runtime(flush_denormals=True),
        host.Runtime(threads=None),
        host.Runtime(threads=0),
        host.Runtime(platform="gpu"),
    ],
    ids=lambda r: repr(r)[8:40],
)
def test_a_runtime_may_be_odd(path: str, runtime: host.Runtime) -> None:
    x = array(3)
    (y,) = host.call(path, x, symbol="Copy", results=x, runtime=runtime)
    np.testing.assert_array_equal(y, x)


def test_flush_to_zero_is_what_the_handler_sees() -> None:
    f = jaxc.compile("void f(int n, const float x[n], float y[n]) { y[0] = x[0] * 0.5f; }").f
    x = np.full(1, np.finfo(np.float32).smallest_normal)
    (kept,) = host.call(f, x)
    (flushed,) = host.call(f, x, runtime=host.Runtime(flush_denormals=True))
    assert kept[0] == x[0] / 2 != 0
    assert flushed[0] == 0


def test_each_allocation_may_fail(path: str) -> None:
    x = array(3)
    for k in range(1, 200):
        runtime = dataclasses.replace(host.Runtime(), fail_allocation=k)
        try:
            host.call(
                path, x, symbol="Scale", results=x, attributes={"scale": 2}, runtime=runtime
            )
        except (MemoryError, host.HostError):
            continue
        break
    assert 5 < k < 199


def test_a_thousand_calls_keep_no_memory(path: str) -> None:
    x = array(64)

    def run() -> None:
        for _ in range(100):
            host.call(path, x, symbol="Rms", results=x, attributes={"eps": np.float32(1)})

        gc.collect()

    run()
    tracemalloc.start()
    run()
    first = tracemalloc.get_traced_memory()[0]
    for _ in range(5):
        run()
    grown = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    assert grown < 60_000  # one array of each call would be more than a megabyte


def test_malformed_records_are_refused(lib: jaxc.Library) -> None:
    handlers = (None, None, None, lib.rms.handlers["cpu"])
    small = np.zeros(1, np.uint8)
    for arguments, error, text in (
        (((12, (), small),), ValueError, "an operand needs 8 bytes, its buffer has 1"),
        (((12, (-1,), small),), ValueError, "impossible size -1"),
        (((12, (1,) * 33, small),), ValueError, "an operand has 33 axes"),
        ((3,), TypeError, "an operand is"),
    ):
        with pytest.raises(error, match=text):
            _jaxc.call_handler(handlers, arguments, (), (), (), {})
    with pytest.raises(ValueError, match="tuple of four"):
        _jaxc.call_handler((), (), (), (), (), {})
    with pytest.raises(ValueError, match="attribute 'a' has kind 3, dtype 12 and 3 bytes"):
        _jaxc.call_handler(handlers, (), (), (("a", 3, 12, b"123"),), (), {})
    code, text = _jaxc.call_handler(handlers, (), (), (), (), {})
    assert (code, text) == (3, "rms: called with 0 arguments, expected 2")
