"""Plain C in, JAX function out.

>>> import jaxc
>>> rms_norm = jaxc.load("rms_norm.c").rms_norm
"""

import jaxc.derivative  # noqa: F401 (registers the derivative rules of the primitives)
from jaxc import config, host
from jaxc.check import check
from jaxc.compiler import include_dir
from jaxc.exporting import bundle, deserialize, export, load_bundle
from jaxc.function import Function, OverloadedFunction, overload
from jaxc.library import Library, compile, load
from jaxc.registration import register
from jaxc.sharding import GatherWarning
from jaxc.version import __version__

__all__ = [
    "Function",
    "GatherWarning",
    "Library",
    "OverloadedFunction",
    "__version__",
    "bundle",
    "check",
    "compile",
    "config",
    "deserialize",
    "export",
    "host",
    "include_dir",
    "load",
    "load_bundle",
    "overload",
    "register",
]
