"""examples/tutorial as a user runs it: its script in a copy of the folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import jax
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "tutorial"
SOURCES = sorted(FOLDER.glob("*.c"))
FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2")

#: Each section, and the first version of JAX that can run it.
SECTIONS = {
    "a simple example": (0, 8),
    "backend code": (0, 8),
    "registering": (0, 8),
    "frontend code": (0, 8),
    "transformations": (0, 10),
    "composing transformations": (0, 10),
    "sharding": (0, 10),
    "several platforms": (0, 10),
    "vmap_method": (0, 8),
    "several dtypes": (0, 8),
    "a state": (0, 8),
    "an asynchronous handler": (0, 8),
    "attributes": (0, 8),
    "work memory": (0, 8),
    "the thread pool": (0, 8),
    "wrong operands": (0, 8),
    "plain C by jaxc.load": (0, 8),
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[str, str]]:
    """ "ok" or "skip" and what was shown, by section."""
    copy = tmp_path_factory.mktemp("user") / "tutorial"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "tutorial.py"],
        cwd=copy,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^(ok|skip) +([^:]+): (.+)$", done.stdout, re.MULTILINE)
    assert {path.name for path in copy.iterdir()} == {
        path.name for path in FOLDER.iterdir() if path.name != "__pycache__"
    }
    return {title: (state, shown) for state, title, shown in found}


def test_the_script_runs_each_section_once_in_order(
    lines: Mapping[str, tuple[str, str]],
) -> None:
    assert list(lines) == list(SECTIONS)


@pytest.mark.parametrize("title", SECTIONS)
def test_section(title: str, lines: Mapping[str, tuple[str, str]]) -> None:
    state, shown = lines[title]
    if state == "skip":
        assert jax.__version_info__ < SECTIONS[title], shown
        pytest.skip(shown)
    assert shown


def test_the_command_of_the_readme_builds_the_handlers(tmp_path: Path) -> None:
    command = re.search(r"^cc .+$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert command is not None
    assert command[0] in (FOLDER / "rms_norm.c").read_text()
    shutil.copy(FOLDER / "rms_norm.c", tmp_path)
    run = command[0].replace("$(python ", f"$({sys.executable} ")
    subprocess.run(["sh", "-c", run], cwd=tmp_path, check=True)
    assert (tmp_path / "librms_norm.so").exists()


def test_the_readme_shows_the_message_that_the_script_prints(
    lines: Mapping[str, tuple[str, str]],
) -> None:
    message = lines["wrong operands"][1].removeprefix("INVALID_ARGUMENT: ")
    assert message in " ".join((FOLDER / "README.md").read_text().split())


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_compiles_without_warnings(file: Path, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    include = f"-I{FOLDER.parents[1] / 'include'}"
    output = ["-c", str(file), "-o", str(tmp_path / "out.o")]
    done = subprocess.run(
        [compiler, *FLAGS, "-pthread", include, *output],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_each_section_of_the_tutorial_has_its_heading() -> None:
    headings = re.findall(r"^## (.+)$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert [heading.lower() for heading in headings] == [
        "a simple example",
        "backend code",
        "registering",
        "frontend code",
        "transformations",
        "composing transformations",
        "sharding",
        "gpus and several platforms",
        "vmap_method",
        "what the tutorial leaves open",
        "the same without all of it",
    ]
