"""Timing of things side by side: interleaved rounds, minima and medians."""

from __future__ import annotations

import dataclasses
import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping

#: Runs a piece of work once or often and returns seconds of one run.
Candidate = Callable[[], float]


@dataclasses.dataclass(frozen=True)
class Samples:
    """Seconds of one run, from each round."""

    seconds: tuple[float, ...]

    @property
    def minimum(self) -> float:
        """Of all rounds: what noise of the machine disturbs least."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """Of all rounds."""
        return statistics.median(self.seconds)

    def __truediv__(self, count: int) -> Samples:
        return Samples(tuple(s / count for s in self.seconds))

    def __str__(self) -> str:
        return f"{duration(self.minimum)} ({duration(self.median)})"


def timed(work: Callable[[], object], repeat: int = 1, warm: bool = False) -> Candidate:
    """A candidate that runs ``work``, which must wait for its own result.

    Args:
      warm: run it once untimed before: caches then hold its data, not another candidate's.
    """

    def once() -> float:
        if warm:
            work()
        start = time.perf_counter()
        for _ in range(repeat):
            work()
        return (time.perf_counter() - start) / repeat

    return once


def interleave(candidates: Mapping[str, Candidate], rounds: int) -> dict[str, Samples]:
    """Measures all candidates in each round, in an order that is shuffled each time.

    Noise of the machine then meets all alike, and no candidate always follows the same one.
    The orders are the same in every run.

    Returns:
      The samples, by the candidates' names.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    names = list(candidates)
    order = random.Random(0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            order.shuffle(names)
            for name in names:
                seconds[name].append(candidates[name]())
    finally:
        gc.enable()
    return {name: Samples(tuple(seconds[name])) for name in candidates}


def duration(seconds: float) -> str:
    """Three digits and a unit: ``174 ns``, ``5.92 us``, ``1.70 s``."""
    for unit, size in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{three_digits(seconds / size)} {unit}"
    return f"{three_digits(seconds)} s"


def three_digits(value: float) -> str:
    """A number with three significant digits and no exponent."""
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{decimals}f}"
