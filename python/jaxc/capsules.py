"""Python's capsules: an address with a name."""

from __future__ import annotations

import ctypes
from typing import Any


def read(capsule: Any) -> tuple[int, bytes | None]:
    """The address that a capsule holds, and its name.

    Raises:
      ValueError: for one that holds nothing any more.
    """
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = api.PyCapsule_GetName(capsule)
    return int(api.PyCapsule_GetPointer(capsule, name)), name
