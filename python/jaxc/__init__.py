"""Plain C in, JAX function out.

>>> import jaxc
>>> rms_norm = jaxc.load("rms_norm.c").rms_norm
"""

import jaxc.derivative  # noqa: F401 (registers the derivative rules of the primitives)
from jaxc import host
from jaxc.check import check
from jaxc.compiler import include_dir
from jaxc.function import Function, OverloadedFunction, overload
from jaxc.library import Library, compile, load
from jaxc.registration import register
from jaxc.version import __version__

__all__ = [
    "Function",
    "Library",
    "OverloadedFunction",
    "__version__",
    "check",
    "compile",
    "host",
    "include_dir",
    "load",
    "overload",
    "register",
]
