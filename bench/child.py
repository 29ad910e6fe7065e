"""What bench.py measures in a process of its own. Prints JSON.

child.py cache WARM.c FILE.c    load FILE.c, which another process has built
child.py memory ROWS SIZE       vmap over ROWS rows beside a shared table of SIZE floats
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import jaxc


def cache(warm: str, path: str) -> dict[str, Any]:
    """Seconds to load a file from the cache, and all commands that were started for it."""
    x = jnp.arange(1.0, 17.0)
    jaxc.load(warm).rms_norm_simd(x, 1e-5).block_until_ready()
    commands: list[list[str]] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            commands.append([str(word) for word in arguments[1]])

    sys.addaudithook(note)
    start = time.perf_counter()
    function = jaxc.load(path).rms_norm
    load = time.perf_counter() - start
    function(x, 1e-5).block_until_ready()
    return {"load": load, "commands": commands}


def memory(rows: str, size: str) -> dict[str, Any]:
    """Bytes that a mapped call adds to the process at its peak, and its result's bytes.

    A small run comes first, because the first one of a process takes memory that has
    nothing to do with rows; it leaves none behind that a large run could take again.
    Null where the system does not say: this needs Linux's clear_refs.
    """
    function = jaxc.load(Path(__file__).with_name("variants.c")).add_table
    x = jnp.ones((int(rows), 16))
    table = jnp.ones(int(size))
    mapped = jax.jit(jax.vmap(function, (0, None)))
    mapped(jnp.ones((8, 16)), table).block_until_ready()
    call = mapped.lower(x, table).compile()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # sets the peak to the present
        before = _status("VmRSS")
        y = call(x, table).block_until_ready()
        return {"peak": _status("VmHWM") - before, "result": y.nbytes}
    except OSError:
        return {"peak": None, "result": None}


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def main() -> None:
    """Does what the command line says."""
    tasks: dict[str, Callable[..., dict[str, Any]]] = {"cache": cache, "memory": memory}
    print(json.dumps(tasks[sys.argv[1]](*sys.argv[2:])))


if __name__ == "__main__":
    main()
