"""The code in README and docs runs as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxc

ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_readme_s_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (kernel,) = blocks("c")
    (tmp_path / "rms_norm.c").write_text(kernel)
    names = {"x": jnp.arange(12.0).reshape(3, 4), "epsilons": jnp.array([1e-5, 1.0])}
    programs = blocks("python")
    assert len(programs) == 4
    for program in programs:
        exec(compile(program, "README.md", "exec"), names)
    assert names["y"].shape == (3, 4)
    assert names["ys"].shape == (2, 3, 4)


def pages() -> list[Path]:
    """Pages with programs, and C files to compile by the commands between them.

    Without docs/scaling.md, whose program needs several devices.
    """
    found = sorted((ROOT / "docs").glob("*.md"))
    return [p for p in found if "```python\n" in p.read_text() and p.stem != "scaling"]


#: What "needs=" in a block's first line means: header, name for the linker, Debian's package.
NEEDS = {"gsl": ("gsl/gsl_sf_bessel.h", "gsl", "libgsl-dev")}
NEEDING = [(p, n) for p in pages() for n in NEEDS if f" needs={n}\n" in p.read_text()]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_s_files_commands_and_programs_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the blocks that need a library, which are the next test's."""
    run_page(page, tmp_path, monkeypatch, ())


@pytest.mark.parametrize(
    ("page", "need"), NEEDING, ids=lambda value: getattr(value, "stem", value)
)
def test_a_page_s_blocks_that_need_a_library(
    page: Path, need: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, library, package = NEEDS[need]
    try:
        jaxc.compile(
            f"#include <{header}>\nfloat f(float x) {{ return x; }}", libraries=[library]
        )
    except RuntimeError as error:
        pytest.skip(f"no {need} here (on Debian: apt install {package}): {str(error)[:200]}")
    run_page(page, tmp_path, monkeypatch, (need,))


def run_page(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...]
) -> None:
    """C blocks are files, named by their first line; sh blocks run; python blocks share names."""
    if "```sh\n" in page.read_text() and shutil.which("cc") is None:
        pytest.skip("no cc, which the page's commands call")
    monkeypatch.chdir(tmp_path)
    x64 = jax.config.jax_enable_x64
    try:
        run_blocks(page, tmp_path, there)
    finally:  # a page that turns 64-bit types on is not for the next one
        jax.config.update("jax_enable_x64", x64)


def run_blocks(page: Path, tmp_path: Path, there: tuple[str, ...]) -> None:
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names: dict[str, Any] = {}
    text = page.read_text()
    count = 0
    for language, need, block in re.findall(
        r"^```(c|sh|python)(?: needs=(\w+))?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        if need and need not in there:
            continue
        if language == "c":
            name = re.match(r"/\* (\w+\.[ch]): ", block)
            if name is not None:
                (tmp_path / name[1]).write_text(block)
        elif language == "sh":
            subprocess.run(
                ["sh", "-eu", "-c", block], check=True, env={**os.environ, "PATH": folders}
            )
        else:
            exec(compile(block, str(page), "exec"), names)
            count += 1
    assert count > 0


def test_the_readme_s_table_is_measured() -> None:
    text = (ROOT / "README.md").read_text()
    assert re.search(r"\d cores.*Python 3\.\d+.*JAX 0\.\d+", text), "no machine line"


def test_every_example_file_named_in_the_readme_is_there() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(list((ROOT / "examples").glob("*.c"))) == 15
    assert "Fifteen kinds" in text
    for path in re.findall(r"`((?:include|python|src|examples|tests|bench)/[\w/.]*)`", text):
        assert (ROOT / path).exists(), path


def test_versions_agree() -> None:
    assert f"## {jaxc.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert jax.__version__
