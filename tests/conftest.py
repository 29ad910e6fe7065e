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


@pytest.fixture
def x64() -> Iterator[None]:
    """64-bit types in JAX for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
