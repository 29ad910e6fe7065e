"""What vmap over many rows adds in memory when one operand is shared by all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

import jaxc
import rival
from edit import child
from report import Row

ROWS = 10_000
SIZE = 1 << 18  # floats: 1 MiB
LIMIT = 1_000_000


def measure() -> list[Row]:
    """Rows for the program's temporary memory and for the process's peak."""
    function = jaxc.load(Path(__file__).with_name("variants.c")).add_table
    ours = _temporary(function)
    theirs = _temporary(_broadcasting)
    seen = child("memory", str(ROWS), str(SIZE))
    rows = [
        Row(
            f"vmap of {ROWS} rows, shared 1 MiB operand: temporary memory",
            _bytes(ours),
            "ffi_call, broadcast_all",
            _bytes(theirs),
            goal="< 1 MB",
            met=ours < LIMIT,
        )
    ]
    if seen["peak"] is not None:
        extra = max(0, seen["peak"] - seen["result"])
        rows.append(
            Row(
                "  the same run: peak of the process, less its result",
                _bytes(extra),
                goal="< 1 MB",
                met=extra < LIMIT,
            )
        )
    return rows


def _temporary(function: Callable[..., jax.Array]) -> int:
    """Bytes that the compiled program wants beyond inputs and results."""
    x = jax.ShapeDtypeStruct((ROWS, 16), jnp.float32)
    table = jax.ShapeDtypeStruct((SIZE,), jnp.float32)
    compiled = jax.jit(jax.vmap(function, (0, None))).lower(x, table).compile()
    return int(compiled.memory_analysis().temp_size_in_bytes)


def _broadcasting(x: jax.Array, table: jax.Array) -> jax.Array:
    """How an ffi_call is mapped; compiled to see what it would need, and never run."""
    call = jax.ffi.ffi_call(
        rival.ATTRIBUTE, jax.ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all"
    )
    result: jax.Array = call(x, table)
    return result


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
