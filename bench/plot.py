"""The plot of docs/benchmarks.md: how many times longer the others take, by size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from kernels import KERNELS
from matrix import Result, is_jax, is_ours

#: Lines of the plot: what jax.numpy, jax.lax are is one of them, the best of all ways.
JAX = "jax.numpy, jax.lax"
LINES = {
    JAX: ("tab:blue", "o"),
    "C++ handler": ("tab:purple", "v"),
    "Warp": ("tab:green", "s"),
    "numba": ("tab:orange", "^"),
    "NumPy": ("tab:red", "x"),
    "SciPy": ("tab:brown", "+"),
}


def draw(results: Sequence[Result], path: Path) -> None:
    """Writes an SVG with a panel for each kernel: first dtype, all threads."""
    matplotlib.use("svg")
    # Text stays text: the file is small, and the same for the same numbers.
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "jaxc", "font.size": 9})
    figure, panels = plt.subplots(2, 4, figsize=(13, 6), sharey=True, layout="constrained")
    for panel, (name, kernel) in zip(panels.flat, KERNELS.items(), strict=True):
        dtype = kernel.dtypes[0]
        mine = sorted(
            (r for r in results if (r.kernel, r.dtype, r.threads) == (name, dtype, "all")),
            key=lambda r: r.elements,
        )
        for line, (color, marker) in LINES.items():
            points = [(r.elements, ratio) for r in mine if (ratio := _ratio(r, line))]
            if points:
                panel.plot(*zip(*points, strict=True), color=color, marker=marker, label=line)
        panel.axhline(1, color="black", linewidth=1)
        panel.set(xscale="log", yscale="log", title=f"{kernel.title}, {dtype}")
        panel.grid(alpha=0.3)
        panel.minorticks_off()  # a third of the file
    for panel in panels[-1]:
        panel.set_xlabel("elements")
    for panel in panels[:, 0]:
        panel.set_ylabel("time / jaxc's time")
    handles = {}
    for panel in panels.flat:
        handles.update({h.get_label(): h for h in panel.get_legend_handles_labels()[0]})
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _ratio(result: Result, line: str) -> float | None:
    ours = result.best(is_ours)
    theirs = result.best(is_jax if line == JAX else lambda column: column == line)
    if ours is None or theirs is None:
        return None
    return result.samples[theirs].minimum / result.samples[ours].minimum
