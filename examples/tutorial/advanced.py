"""The topics that JAX's tutorial leaves open, with the handlers of advanced.c."""

from __future__ import annotations

import ctypes
import functools
import gc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from steps import X, close, compiled, error_of, like, rms_norm_ref, section

import jaxc


@functools.cache
def register_advanced() -> ctypes.CDLL:
    path, _ = compiled("advanced", "-pthread")
    library = ctypes.CDLL(str(path))
    for target, symbol in {
        "tutorial_any": "RmsNormAny",
        "tutorial_float32": "RmsNormF32",
        "tutorial_float64": "RmsNormF64",
        "tutorial_bfloat16": "RmsNormBf16",
        "tutorial_window": "Window",
        "tutorial_later": "Later",
        "tutorial_filter": "Filter",
        "tutorial_median": "Median",
        "tutorial_parallel": "Parallel",
    }.items():
        jaxc.register(target, library, symbol=symbol)
    return library


@section("several dtypes")
def dtypes() -> str:
    register_advanced()
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-7), ("bfloat16", 1e-2)):
            x = jnp.asarray(np.linspace(-0.5, 0.5, 32).reshape(8, 4), dtype)
            expected = rms_norm_ref(x.astype("float64"))
            for target in ("tutorial_any", f"tutorial_{dtype}"):
                y = jax.ffi.ffi_call(target, like(x))(x, eps=np.float32(1e-5))
                assert y.dtype == x.dtype
                close(y, expected, tolerance, tolerance / 10)
        half = X.astype("float16")
        error_of(
            lambda: jax.ffi.ffi_call("tutorial_any", like(half))(half, eps=np.float32(1e-5)),
            says="RmsNormAny: not implemented for float16",
        )
    finally:
        jax.config.update("jax_enable_x64", before)
    return "float32, float64, bfloat16: by one handler with a switch, by a handler each"


@section("a state")
def stateful() -> str:
    library = register_advanced()
    n = 64

    def window(x: Any) -> Any:
        return jax.ffi.ffi_call("tutorial_window", like(x))(x, size=n)

    made = library.count_windows_made()
    function = jax.jit(window).lower(jnp.ones(n)).compile()
    assert library.count_windows_made() == made + 1  # with the program, not with a call
    for scale in (1.0, 2.0, 3.0):
        close(function(jnp.full(n, scale)), scale * jnp.hanning(n), 1e-5, 1e-6)
    assert library.count_windows_made() == made + 1
    gone = library.count_windows_gone()
    del function
    jax.clear_caches()
    gc.collect()
    assert library.count_windows_gone() == gone + 1
    error_of(
        lambda: jax.ffi.ffi_call("tutorial_window", like(jnp.ones(1)))(jnp.ones(1), size=1),
        says="Window: size is 1, expected 2 to 1048576",
    )
    return "a window made once for 3 calls, destroyed with the program"


@section("an asynchronous handler")
def asynchronous() -> str:
    library = register_advanced()

    def later(x: Any, eps: float) -> Any:
        return jax.ffi.ffi_call("tutorial_later", like(x))(x, eps=np.float32(eps))

    before = library.count_finished_later()
    twice = jax.jit(lambda x: later(2 * later(x, 0.1), 0.2))
    close(twice(X), rms_norm_ref(2 * rms_norm_ref(X, 0.1), 0.2))
    assert library.count_finished_later() == before + 2
    message = error_of(lambda: later(X, -1.0), says="Later: eps is negative")
    assert message.startswith("INVALID_ARGUMENT")
    return "two calls finished by threads after their handler was through; an error arrives too"


@section("attributes")
def attributes() -> str:
    register_advanced()
    x = jnp.sin(jnp.arange(12.0))
    taps = np.array([0.5, 0.25, -1.0], "float32")
    edges = {0: jnp.zeros(2), 1: jnp.full(2, x[0]), 2: x[-2:]}

    def call(**attrs: Any) -> Any:
        return jax.ffi.ffi_call("tutorial_filter", like(x))(x, **attrs)

    output = {"scale": np.float32(2), "offset": np.float32(0.5)}
    for edge, left in edges.items():
        for activation, function in (("tanh", jnp.tanh), ("none", lambda v: v)):
            for reverse in (False, True):
                ours = call(
                    activation=activation, edge=edge, output=output, reverse=reverse, taps=taps
                )
                whole = jnp.concatenate([left, x])
                sums = jnp.convolve(whole, taps[::-1] if reverse else taps, "valid")
                close(ours, 2 * function(sums) + 0.5)
    close(call(activation="none", edge=0, output=output, taps=taps)[0], 2 * 0.5 * x[0] + 0.5)
    error_of(
        lambda: call(activation="relu", edge=0, output=output, taps=taps),
        says="Filter: activation is 'relu', expected 'none' or 'tanh'",
    )
    error_of(
        lambda: call(activation="tanh", edge=3, output=output, taps=taps),
        says="Filter: attribute 'edge' is 3, expected 0 to 2",
    )
    error_of(
        lambda: call(activation="tanh", edge=0, output={"scale": np.float32(2)}, taps=taps),
        says="Filter: in dictionary 'output': attribute 'offset' is missing",
    )
    return "a string, an enum, a nested dictionary, an optional bool, an array"


@section("work memory")
def scratch() -> str:
    register_advanced()
    x = jax.random.normal(jax.random.key(0), (5, 3, 100))
    ours = jax.ffi.ffi_call("tutorial_median", jax.ShapeDtypeStruct((5, 3), x.dtype))(x)
    close(ours, jnp.median(x, axis=-1))
    return "medians, each row sorted in memory that the call frees"


@section("the thread pool")
def pool() -> str:
    library = register_advanced()
    x = jax.random.normal(jax.random.key(1), (1000, 64))
    before = library.count_pieces_done()
    close(
        jax.ffi.ffi_call("tutorial_parallel", like(x))(x, eps=np.float32(1e-5)),
        rms_norm_ref(x),
        1e-4,
    )
    pieces = library.count_pieces_done() - before
    assert pieces >= 1
    empty = jnp.zeros((3, 0))
    assert jax.ffi.ffi_call("tutorial_parallel", like(empty))(
        empty, eps=np.float32(1)
    ).shape == (3, 0)
    return f"1000 rows in {pieces} pieces on XLA's threads; the last piece finishes the call"


@section("wrong operands")
def wrong() -> str:
    register_advanced()
    wrong_result = jax.ShapeDtypeStruct((), "int32")
    message = error_of(
        lambda: jax.ffi.ffi_call("tutorial_float32", wrong_result)(
            X.astype("float16"), X, epsilon=np.float32(1e-5)
        ),
        says="RmsNormF32: ",
    )
    for part in (
        "argument 0 ('x') has dtype float16, expected float32",
        "result 0 ('y') has dtype int32, expected float32",
        "attribute 'eps' is missing",
        "called with 2 arguments, expected 1",
        "attribute 'epsilon' is not expected",
    ):
        assert part in message, message
    return message
