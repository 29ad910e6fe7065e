"""Handlers written on XLA's own C++ header: called by jaxc.host as XLA calls them, with the
header's own words for what is wrong, and registered by jaxc.register."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxc
from jaxc.registration import api_version

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def rms_norm(cxx: Callable[[str], str]) -> str:
    return cxx("rms_norm")


@pytest.fixture(scope="module")
def stages(cxx: Callable[[str], str]) -> str:
    return cxx("stages")


def like(shape: tuple[int, ...], dtype: Any = np.float64) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def sample(*shape: int) -> Array:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def expected(x: Array, eps: float) -> Array:
    return np.asarray(x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(eps)))


# ---- the tutorial's handler ----


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (0, 4), (1, 1)])
def test_rms_norm_is_right(rms_norm: str, shape: tuple[int, ...]) -> None:
    x = sample(*shape)
    (y,) = jaxc.host.call(
        rms_norm, x, symbol="RmsNorm", results=x, attributes={"eps": np.float32(1e-5)}
    )
    np.testing.assert_allclose(y, expected(x, 1e-5), rtol=1e-6)


def test_rms_norm_is_the_same_in_jax(rms_norm: str) -> None:
    jaxc.register("foreign_rms_norm", rms_norm, symbol="RmsNorm")
    x = sample(6, 7)
    attributes = {"eps": np.float32(1e-5)}
    f = jax.ffi.ffi_call("foreign_rms_norm", like(x.shape, x.dtype))
    y = jax.jit(lambda x: f(x, **attributes))(x)
    (z,) = jaxc.host.call(rms_norm, x, symbol="RmsNorm", results=x, attributes=attributes)
    np.testing.assert_array_equal(y, z)


EPS = {"eps": np.float32(1)}
X = sample(4)

#: Arguments, results, attributes, and what the header says of them.
REFUSALS: dict[str, tuple[list[Any], list[Any], dict[str, Any], str]] = {
    "no argument": ([], [X], EPS, "Wrong number of arguments: expected 1 but got 0"),
    "two arguments": ([X, X], [X], EPS, "Wrong number of arguments: expected 1 but got 2"),
    "two results": ([X], [X, X], EPS, "Wrong number of results: expected 1 but got 2"),
    "no attribute": ([X], [X], {}, "Wrong number of attributes: expected 1 but got 0"),
    "attribute of another name": (
        [X], [X], {"epsilon": np.float32(1)}, "Attribute name mismatch: epsilon vs eps"),
    "float64": ([X.astype(np.float64)], [X], EPS, "Wrong buffer dtype: expected F32 but got F64"),
    "int32 result": (
        [X], [X.astype(np.int32)], EPS, "Wrong buffer dtype: expected F32 but got S32"),
    "float64 attribute": ([X], [X], {"eps": 1.0}, "Wrong scalar data type: expected F32 but got F64"),
    "string attribute": ([X], [X], {"eps": "1"}, "Wrong attribute type: expected scalar but got string"),
    "array attribute": (
        [X], [X], {"eps": np.ones(1, np.float32)},
        "Wrong attribute type: expected scalar but got array"),
    "token": ([None], [X], EPS, "Wrong buffer dtype: expected F32 but got TOKEN"),
    "scalar": ([np.float32(1)], [np.float32(1)], EPS, "RmsNorm input must be an array"),
}  # fmt: skip


def refusal(path: str, what: str) -> jaxc.host.HostError:
    arguments, results, attributes, _ = REFUSALS[what]
    with pytest.raises(jaxc.host.HostError) as error:
        jaxc.host.call(
            path, *arguments, symbol="RmsNorm", results=results, attributes=attributes
        )
    return error.value


@pytest.mark.parametrize("what", REFUSALS)
def test_the_header_refuses_in_its_own_words(rms_norm: str, what: str) -> None:
    error = refusal(rms_norm, what)
    assert REFUSALS[what][-1] in str(error)
    assert error.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("what", [w for w in REFUSALS if w != "token"])
def test_jax_says_the_same_word_for_word(rms_norm: str, what: str, x64: None) -> None:
    jaxc.register("foreign_rms_norm", rms_norm, symbol="RmsNorm")
    arguments, results, attributes, _ = REFUSALS[what]
    call = jax.ffi.ffi_call("foreign_rms_norm", [like(x.shape, x.dtype) for x in results])
    with pytest.raises(jax.errors.JaxRuntimeError) as error:
        # A program of its own: called eagerly, 1.0 is the same attribute as np.float32(1) to
        # JAX, which then runs what it compiled for the other.
        jax.block_until_ready(jax.jit(lambda *a: call(*a, **attributes))(*arguments))
    expected = refusal(rms_norm, what)
    # JAX adds a remark of its own behind the text.
    assert str(error.value).startswith(f"{expected.code}: {expected}")


@pytest.mark.parametrize("minor", range(1, 6))
def test_a_runtime_that_is_older_than_the_header_refuses_it(rms_norm: str, minor: int) -> None:
    header = api_version()
    assert header is not None

    def call() -> Any:
        return jaxc.host.call(
            rms_norm, X, symbol="RmsNorm", results=X, attributes=EPS,
            runtime=jaxc.host.Runtime(minor=minor),
        )  # fmt: skip

    if minor >= header[1]:
        np.testing.assert_allclose(call()[0], expected(X, 1), rtol=1e-6)
    else:
        with pytest.raises(ValueError, match=rf"API version \(0\.{header[1]}\)") as error:
            call()
        assert f"(0.{minor})" in str(error.value)


# ---- states ----


def counting(library: ctypes.CDLL, instantiate: str) -> dict[str, Any]:
    return {"instantiate": getattr(library, instantiate), "execute": library.CountExecute}


def test_a_state_of_cxx_is_made_and_destroyed(stages: str) -> None:
    library = ctypes.CDLL(stages)
    x = np.arange(5.0)
    (y,) = jaxc.host.call(
        counting(library, "SelfInstantiate"), x, results=x, attributes={"factor": 3}
    )
    np.testing.assert_array_equal(y, 3 * x)
    assert library.states_alive() == 0


def test_an_error_of_instantiate_is_the_error_of_the_call(stages: str) -> None:
    library = ctypes.CDLL(stages)
    x = np.arange(5.0)
    with pytest.raises(jaxc.host.HostError, match="factor is 0") as error:
        jaxc.host.call(
            counting(library, "SelfInstantiate"), x, results=x, attributes={"factor": 0}
        )
    assert error.value.code == "OUT_OF_RANGE"
    assert library.states_alive() == 0


def test_a_state_without_instantiate_is_missing(stages: str) -> None:
    library = ctypes.CDLL(stages)
    x = np.arange(5.0)
    with pytest.raises(jaxc.host.HostError, match="State is not set"):
        jaxc.host.call(library.CountExecute, x, results=x, attributes={"factor": 3})


#: Without anything that a test before may have done: no backend, no number of the type.
REGISTER = """
import ctypes, gc, sys
import jax, numpy as np
import jaxc

jax.config.update("jax_enable_x64", True)
library = ctypes.CDLL(sys.argv[1])
library.counter_type_id.restype = library.counter_type_info.restype = ctypes.c_void_p
if sys.argv[2] == "after":
    jax.devices("cpu")
jaxc.register(
    "foreign_count",
    {"instantiate": library.CountInstantiate, "execute": library.CountExecute},
    types={
        "jaxc_tests.counter": {
            "type_id": jax.ffi.pycapsule(library.counter_type_id()),
            "type_info": jax.ffi.pycapsule(library.counter_type_info()),
        }
    },
)
x = np.arange(3.0)
f = jax.jit(lambda x: jax.ffi.ffi_call("foreign_count", jax.typeof(x))(x, factor=3))
print(f(x), f(x), library.states_alive())
f.clear_cache()
gc.collect()
print(library.states_alive())
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_type_of_a_cxx_state_is_registered_first(stages: str, when: str) -> None:
    """`when`: after the backend was made, or before."""
    done = subprocess.run(
        [sys.executable, "-c", REGISTER, stages, when],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0. 3. 6.] [1. 4. 7.] 1", "0"]


# ---- futures and threads ----


@pytest.mark.parametrize("threads", [None, 0, 1, 4])
def test_a_future_of_cxx_is_waited_for(stages: str, threads: int | None) -> None:
    x = np.arange(1000.0)
    runtime = jaxc.host.Runtime(threads=threads)
    (y,) = jaxc.host.call(
        stages, x, symbol="Asynchronous", results=x, attributes={"fail": ""}, runtime=runtime
    )
    np.testing.assert_array_equal(y, 2 * x)


def test_an_error_of_a_cxx_future_is_the_error_of_the_call(stages: str) -> None:
    x = np.arange(3.0)
    with pytest.raises(jaxc.host.HostError, match=r"^gone$") as error:
        jaxc.host.call(stages, x, symbol="Asynchronous", results=x, attributes={"fail": "gone"})
    assert error.value.code == "DATA_LOSS"


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_tasks_of_cxx_run_in_the_pool(stages: str, threads: int) -> None:
    values = [np.array([float(i)]) for i in range(20)]
    (y,) = jaxc.host.call(
        stages, *values, symbol="PooledSum", results=like((1,)),
        runtime=jaxc.host.Runtime(threads=threads),
    )  # fmt: skip
    assert y == 190


def test_an_error_among_tasks_is_the_error_of_the_call(stages: str) -> None:
    values = [np.array([1.0]), np.array([1], np.int32), np.array([2.0])]
    with pytest.raises(jaxc.host.HostError, match="expected F64 but got S32"):
        jaxc.host.call(stages, *values, symbol="PooledSum", results=like((1,)))


def test_futures_and_tasks_are_the_same_in_jax(stages: str, x64: None) -> None:
    jaxc.register("foreign_later", stages, symbol="Asynchronous")
    jaxc.register("foreign_sum", stages, symbol="PooledSum")
    x = np.arange(1000.0)
    later = jax.ffi.ffi_call("foreign_later", like(x.shape))
    np.testing.assert_array_equal(later(x, fail=""), 2 * x)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"^DATA_LOSS: gone"):
        jax.block_until_ready(later(x, fail="gone"))
    values = [np.array([float(i)]) for i in range(20)]
    assert jax.ffi.ffi_call("foreign_sum", like((1,)))(*values) == 190


# ---- operands and attributes of every kind ----

KINDS = {
    "flag": True,
    "small": np.int8(-8),
    "list": np.array([[1, 2], [3, 4]], np.int32),
    "text": "four",
    "colour": 1,
    "range": {"low": -5, "high": 0.5},
    "more": {"inner": np.float32(0.25), "unread": 1},
}


def test_attributes_of_every_kind_arrive(stages: str) -> None:
    bf16 = jax.numpy.bfloat16.dtype
    out = jaxc.host.call(
        stages, np.zeros((2, 3), bf16), None, symbol="AllKinds", results=[like((10,)), None],
        attributes=KINDS,
    )  # fmt: skip
    assert out[0].tolist() == [1, -8, 10, 4, 1, -5, 0.5, 0.25, 16, 12]


def test_all_that_is_wrong_with_attributes_is_told_at_once(stages: str) -> None:
    wrong = KINDS | {"flag": 1, "text": np.zeros(2), "range": {"low": -5}}
    with pytest.raises(jaxc.host.HostError) as error:
        jaxc.host.call(
            stages, np.zeros(1), None, symbol="AllKinds", results=[like((10,)), None],
            attributes=wrong,
        )  # fmt: skip
    text = str(error.value)
    assert "Wrong scalar data type: expected PRED but got S64" in text
    assert "Wrong attribute type: expected string but got array" in text
    assert "Wrong number of attributes: expected 2 attributes but got 1" in text
