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
    assert len(programs) == 3
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


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_page_s_files_commands_and_programs_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C blocks are files, named by their first line; sh blocks run; python blocks share names."""
    if "```sh\n" in page.read_text() and shutil.which("cc") is None:
        pytest.skip("no cc, which the page's commands call")
    monkeypatch.chdir(tmp_path)
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names: dict[str, Any] = {}
    text = page.read_text()
    count = 0
    for language, block in re.findall(
        r"^```(c|sh|python)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
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
    assert len(list((ROOT / "examples").glob("*.c"))) == 14
    assert "Fourteen kinds" in text
    for path in re.findall(r"`((?:include|python|src|examples|tests|bench)/[\w/.]*)`", text):
        assert (ROOT / path).exists(), path


def test_versions_agree() -> None:
    import jaxc

    assert f"## {jaxc.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert jax.__version__
