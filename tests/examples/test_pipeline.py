"""examples/pipeline: several kernels in one call, in three ways that agree."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def example() -> Any:
    path = ROOT / "examples" / "pipeline" / "pipeline.py"
    spec = importlib.util.spec_from_file_location("pipeline_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def reference(x: np.ndarray) -> np.ndarray:
    i = np.arange(x.shape[-1])
    slope, offset = np.polyfit(i, x.T.astype(float), 1)
    y = (x - slope[:, None] * i - offset[:, None]) * np.hanning(x.shape[-1])
    return y / np.sqrt((y * y).sum(-1, keepdims=True))


@pytest.mark.parametrize("way", ["three calls", "a Python callback", "a C function"])
def test_each_way(example: Any, way: str) -> None:
    x = np.random.default_rng(0).normal(size=(5, 32)).astype(np.float32) + np.arange(32)
    x = x.astype(np.float32)
    program = jax.jit(jax.vmap(example.WAYS[way]))
    np.testing.assert_allclose(program(x), reference(x), rtol=1e-3, atol=1e-5)
    assert program.lower(x).as_text().count("custom_call @") == (3 if "three" in way else 1)


def test_a_callback_may_decide(example: Any) -> None:
    np.testing.assert_array_equal(example.in_python(np.zeros(8, np.float32)), 0)


def test_it_runs(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    assert capsys.readouterr().out.count("us for 64 signals") == 3
