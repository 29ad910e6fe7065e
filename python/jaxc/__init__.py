"""Plain C in, JAX function out.

>>> import jaxc
>>> rms_norm = jaxc.load("rms_norm.c").rms_norm
"""

import jaxc.derivative  # noqa: F401 (registers the derivative rules of the primitives)
from jaxc import config, host
from jaxc.binding import bind
from jaxc.callbacks import callback
from jaxc.check import check
from jaxc.compiler import include_dir
from jaxc.exporting import bundle, deserialize, export, load_bundle
from jaxc.function import Function
from jaxc.library import Library, compile, load
from jaxc.overloads import OverloadedFunction, overload
from jaxc.raw_callbacks import CallbackContext, register_callback
from jaxc.registration import register
from jaxc.sharding import GatherWarning
from jaxc.ufuncs import ufunc
from jaxc.version import __version__

__all__ = [
    "CallbackContext",
    "Function",
    "GatherWarning",
    "Library",
    "OverloadedFunction",
    "__version__",
    "bind",
    "bundle",
    "callback",
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
    "register_callback",
    "ufunc",
]
