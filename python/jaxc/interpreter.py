"""Python from XLA's threads: what is left of its exceptions, and the end of the process."""

from __future__ import annotations

import atexit
import collections
import os
import threading
import traceback

import jax

from jaxc import _jaxc  # type: ignore[attr-defined]

#: Exceptions of the last calls, by the text of their traceback, for eager calls to show.
_raised: collections.OrderedDict[str, BaseException] = collections.OrderedDict()
_raised_lock = threading.Lock()


def text_of(exception: BaseException) -> tuple[str, str]:
    """First line and traceback of an exception, whose frames let go of the arrays."""
    first = _printable("".join(traceback.format_exception_only(exception)).strip())
    whole = _printable("".join(traceback.format_exception(exception)).rstrip())
    if exception.__traceback__ is not None:
        traceback.clear_frames(exception.__traceback__)
    with _raised_lock:
        _raised[whole] = exception
        while len(_raised) > 8:
            _raised.popitem(last=False)
    return first, whole


def _printable(text: str) -> str:
    """The text in UTF-8, which has no halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode()


def cause(text: str) -> BaseException | None:
    with _raised_lock:
        for whole in reversed(_raised):
            if whole in text:
                return _raised.pop(whole)
    return None


def _close() -> None:
    """Ends callbacks before the interpreter: what still runs then gets an error."""
    try:
        jax.effects_barrier()
    finally:
        _jaxc.close_interpreter()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_jaxc.after_fork)
