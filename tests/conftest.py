"""What all Python tests share: a cache folder of their own and 64-bit types on demand."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

# Before jaxc is imported: libraries of a test run must not come from the user's cache.
_CACHE = tempfile.TemporaryDirectory(prefix="jaxc-tests-")
os.environ["JAXC_CACHE_DIR"] = _CACHE.name

import jax  # noqa: E402

#: Tests of C and C++ alone need not run for each Python; scripts/run_tests.py says where.
_WITHOUT_C = "JAXC_TESTS_WITHOUT_C" in os.environ


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if _WITHOUT_C and item.get_closest_marker("c_only")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit types in JAX for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
