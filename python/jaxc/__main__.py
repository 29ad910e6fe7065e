"""``python -m jaxc``: what build systems ask of an installed jaxc.

::

    cc -std=c11 -shared -fPIC -I$(python -m jaxc --include) handler.c -o handler.so
    cmake -B build -Djaxc_DIR=$(python -m jaxc --cmake)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxc.version import __version__

_PACKAGE = Path(__file__).parent


def _folder(name: str, file: str) -> int:
    """Prints a folder of the package. Only an installed jaxc has all of them."""
    folder = _PACKAGE / name
    if not (folder / file).is_file():
        print(f"python -m jaxc: {folder / file} is missing: install jaxc", file=sys.stderr)
        return 1
    print(folder)
    return 0


def _include(options: argparse.Namespace) -> int:
    del options
    return _folder("include", "jaxc/jaxc.h")


def _lib(options: argparse.Namespace) -> int:
    del options
    return _folder("lib", "libjaxc_host.a")


def _cmake(options: argparse.Namespace) -> int:
    del options
    return _folder("cmake", "jaxcConfig.cmake")


def _parser() -> argparse.ArgumentParser:
    """Each argument that asks for something sets ``answer`` to what answers it."""
    parser = argparse.ArgumentParser(
        prog="python -m jaxc", description="Where jaxc's headers are, for compilers and CMake."
    )
    question = parser.add_mutually_exclusive_group(required=True)
    for name, answer, text in (
        ("--include", _include, "print the folder of <jaxc/jaxc.h>, for cc -I"),
        ("--lib", _lib, "print the folder of libjaxc_host, for cc -L"),
        ("--cmake", _cmake, "print the folder of the CMake package, for cmake -Djaxc_DIR="),
    ):
        question.add_argument(
            name, action="store_const", dest="answer", const=answer, help=text
        )
    question.add_argument("--version", action="version", version=__version__)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Answers one question on standard output.

    Args:
      arguments: of the command line; those of the process when left out.

    Returns:
      The exit status. Arguments that mean nothing end the process with status 2.
    """
    options = _parser().parse_args(arguments)
    answer: Callable[[argparse.Namespace], int] = options.answer
    return answer(options)


if __name__ == "__main__":
    sys.exit(main())
