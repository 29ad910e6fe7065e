"""Targets of the functions that this process has: names that compiled programs call."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from jaxc import compat, sharding
from jaxc.description import Description

_registered: dict[tuple[str, str], Path | None] = {}
_lock = threading.Lock()


def registered() -> dict[str, Path | None]:
    """Targets, each with the library it is in; None for what lives in this process only."""
    with _lock:
        return {target: path for (target, _), path in _registered.items()}


def name(library: str, function: str, hash_: str) -> str:
    """The name of a target: no address, and the same in every process."""
    return f"jaxc:{library}:{function}:{hash_}"


def register(
    target: str, description: Description, platform: str, capsule: Any, path: Path | None
) -> None:
    """Registers a handler with XLA; a target that is there is the same function."""
    with _lock:
        if (target, platform) not in _registered:
            compat.register_target(target, capsule, platform)
            sharding.register(target, description)
            _registered[target, platform] = path
