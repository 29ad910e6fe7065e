"""From a changed C file to the first number, and what a second process pays."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxc
import rival
from report import Row, compare
from timing import Samples, duration, interleave

HERE = Path(__file__).parent
EPS = 1e-5


def measure(rounds: int, folder: Path) -> list[Row]:
    """Rows for the edit loop, then for a process that finds the library in the cache."""
    rows = _edit_to_result(rounds, folder)
    rows.append(_second_process(folder))
    return rows


def _edited(source: Path, gain: float) -> str:
    """The text of a source with another gain: an edit that no cache has seen."""
    text = source.read_text()
    before, found, after = text.partition("gain = 1.0f;")
    if not found:
        raise ValueError(f"{source} has no gain to edit")
    return f"{before}gain = {gain!r}f;{after}"


def _edit_to_result(rounds: int, folder: Path) -> list[Row]:
    x = jnp.arange(1.0, 17.0)
    plain = np.asarray(x) / np.sqrt(np.mean(np.square(np.asarray(x))) + EPS)
    c_file, cc_file = folder / "rms_norm.c", folder / "rival.cc"
    gains: Iterator[float] = (1 + k / 1024 for k in itertools.count(1))
    loads: list[float] = []

    def ours() -> float:
        gain = next(gains)
        text = _edited(HERE / "rms_norm.c", gain)
        start = time.perf_counter()
        c_file.write_text(text)
        function = jaxc.load(c_file).rms_norm
        loaded = time.perf_counter()
        y = function(x, EPS).block_until_ready()
        end = time.perf_counter()
        np.testing.assert_allclose(y, gain * plain, rtol=1e-6)
        loads.append(loaded - start)
        return end - start

    def theirs() -> float:
        text = _edited(rival.SOURCE, next(gains))
        start = time.perf_counter()
        cc_file.write_text(text)
        rival.compile_handler(cc_file, folder / "edited.so")
        return time.perf_counter() - start

    result = interleave({"jaxc": ours, "C++": theirs}, rounds)
    load = Samples(tuple(loads))
    return [
        compare("edit to first result", result["jaxc"], "C++, compile alone", result["C++"], 8),
        Row("  of which jaxc.load", str(load)),
    ]


def _second_process(folder: Path) -> Row:
    """Another process loads the file that was edited last."""
    cache = Path(os.environ["JAXC_CACHE_DIR"])
    before = {entry.name for entry in cache.iterdir()}
    seen = child("cache", str(HERE / "variants.c"), str(folder / "rms_norm.c"))
    added = {entry.name for entry in cache.iterdir()} - before
    compiled = [command for command in seen["commands"] if "-E" not in command]
    clean = not added and not compiled
    found = "nothing compiled" if clean else f"{len(compiled)} compiler runs"
    return Row(
        "second process, same file: jaxc.load",
        f"{duration(seen['load'])}, {found}",
        goal="compiles nothing",
        met=clean,
    )


def child(*arguments: str) -> dict[str, Any]:
    """Runs child.py and returns what it reports."""
    command = [sys.executable, str(HERE / "child.py"), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result
