"""Calls the handlers of two libraries under the JAX that runs this, without jaxc's package,
and prints what came as JSON. test_runtimes.py reads it.

    python runtimes_child.py handlers.so versatile.so
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jaxlib
import numpy as np

STAGES = ("instantiate", "execute")

#: As in versatile.c.
REFUSALS = ("stream", "device memory", "options", "extension", "no state", "other state",
            "two futures", "initialize state", "blocks")  # fmt: skip

KINDS = {
    "flag": True, "i8": np.int8(-8), "i16": np.int16(-16), "i32": np.int32(-32),
    "i64": -(2**40), "u8": np.uint8(200), "u16": np.uint16(60000),
    "u32": np.uint32(2**32 - 1), "u64": np.uint64(2**63 - 1), "f32": np.float32(0.5),
    "f64": 0.25, "hue": 2, "address": 4096, "text": "añ",
    "numbers": np.array([[7, 8], [9, 10]], np.int16), "inner": {"k": 5, "word": "four"},
}  # fmt: skip


def struct(shape: tuple[int, ...], dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def outcome(function: Callable[[], Any]) -> Any:
    """What a call returned, as numbers, or the text of its error."""
    try:
        out = function()
        return jax.tree.map(lambda x: np.asarray(x).tolist(), jax.block_until_ready(out))
    except Exception as error:
        return str(error)


def register(library: ctypes.CDLL, symbol: str, *, stages: bool = False) -> str | None:
    capsule = jax.ffi.pycapsule(getattr(library, symbol))
    handlers = dict.fromkeys(STAGES, capsule) if stages else capsule
    try:
        jax.ffi.register_ffi_target(f"child_{symbol}", handlers, platform="cpu")
    except Exception as error:
        return str(error)
    return None


def call(symbol: str, results: Any, *arguments: Any, **attributes: Any) -> Any:
    f = jax.ffi.ffi_call(f"child_{symbol}", results)
    return outcome(lambda: jax.jit(lambda *a: f(*a, **attributes))(*arguments))


def call_pooled(versatile: ctypes.CDLL) -> dict[str, Any]:
    x = np.arange(1000, dtype=np.float32)
    results = (struct((1000,)), struct((), np.int32))
    f = jax.jit(lambda x: jax.ffi.ffi_call("child_Pooled", results)(x))
    first, second = outcome(lambda: f(x)), outcome(lambda: f(x))
    alive = versatile.pooled_states()
    f.clear_cache()
    gc.collect()
    left = versatile.pooled_states()
    quarter = call("Pooled", results, x, scale=np.float32(0.25))
    failed = call("Pooled", results, x, fail="the work came to nothing")
    wrong = call("Pooled", results, x.astype(np.float64), scale=1.0, unknown=1)
    return {"first": first, "second": second, "alive": alive, "left": left,
            "quarter": quarter, "failed": failed, "wrong": wrong}  # fmt: skip


def call_about() -> dict[str, Any]:
    about = jax.ffi.ffi_call("child_About", struct((6,), np.int32), has_side_effect=True)

    @jax.jit
    def program() -> Any:
        first = about()
        return first, about(first)

    return {"runs": [outcome(program), outcome(program)]}


def main(handlers_path: str, versatile_path: str) -> dict[str, Any]:
    handlers, versatile = ctypes.CDLL(handlers_path), ctypes.CDLL(versatile_path)
    out: dict[str, Any] = {"jaxlib": jaxlib.__version__}
    jax.config.update("jax_enable_x64", True)
    # Else registrations wait for the platform, and the first that fails takes it down.
    jax.devices("cpu")
    out["refused registrations"] = {
        symbol: register(versatile, symbol) for symbol in ("NeedsTwo", "NeedsFive")
    } | {symbol: register(handlers, symbol) for symbol in ("Newer", "Future")}
    registered = {symbol: register(handlers, symbol) for symbol in ("Rms", "Kinds")}
    registered["About"] = register(versatile, "About")
    registered["Scale"] = register(handlers, "Scale", stages=True)
    for symbol in ("Pooled", "Refused", "Twice"):
        registered[symbol] = register(versatile, symbol, stages=True)
    out["registered"] = registered
    out["again"] = register(versatile, "Pooled", stages=True)

    x = np.linspace(-0.5, 0.5, 32, dtype=np.float32).reshape(8, 4)
    out["rms"] = call("Rms", struct(x.shape), x, eps=np.float32(1))
    out["rms of nothing"] = call("Rms", struct((0, 4)), x[:0], eps=np.float32(1))
    out["wrong rms"] = call("Rms", struct((), np.int32), np.ones(3), eps=1.0, k=1)
    out["scale"] = call("Scale", struct(x.shape), x, scale=3)
    out["wrong scale"] = call("Scale", struct(x.shape), x, scale=3.0)
    out["kinds"] = call("Kinds", struct((19,), np.float64), **KINDS)
    out["pooled"] = call_pooled(versatile)
    out["about"] = call_about()
    out["refusals"] = {
        what: call("Refused", struct((), np.int32), what=i) for i, what in enumerate(REFUSALS)
    }
    out["twice"] = call("Twice", struct((), np.int32), what=0)
    return out


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2])))
