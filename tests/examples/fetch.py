"""Source packages of public projects, fetched by name and version for the tests.

Nothing of them is in this repository. They are kept between runs, in $JAXC_TEST_DOWNLOADS
or ~/.cache/jaxc-tests; a package that cannot be had skips the test that asks for it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

#: pip saves a source package only after its build backend has said what it is. This one
#: answers for all of them, at once and without running any code of the package.
_BACKEND = """\
import os
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    name = "{name}-{version}.dist-info"
    os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return name
__legacy__ = __import__("sys").modules[__name__]
"""
_BACKENDS = ("setuptools", "mesonpy")

#: An index that nobody answers for is not asked again in this run.
_unreachable: list[str] = []


def sdist(name: str, version: str, sha256: str) -> Path:
    """The folder of a source package of PyPI; skips the test when it cannot be had.

    Raises:
      ValueError: when the package is another one than ``sha256`` says.
    """
    return cached(
        f"{name}-{version}-{sha256[:12]}",
        lambda folder: _download_sdist(name, version, sha256, folder),
    )


def debian(name: str, version: str, inner: str, keep: Sequence[str]) -> Path:
    """The folder in an archive in a package of Debian, whose signature apt checks.

    Args:
      inner: the archive, as a pattern.
      keep: the folders in it that are wanted, from its top.
    """
    return cached(
        f"{name}-{version.replace('+', '-')}",
        lambda folder: _download_debian(name, version, inner, keep, folder),
    )


def cached(entry: str, fill: Callable[[Path], None]) -> Path:
    """The one folder in an entry of the cache; ``fill`` makes it in a new folder's "content"."""
    root = Path(os.environ.get("JAXC_TEST_DOWNLOADS") or Path.home() / ".cache/jaxc-tests")
    folder = root / entry
    if not folder.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=root) as new:
            fill(Path(new))
            # Another process may have been faster, with the same files.
            if not folder.is_dir():
                Path(new, "content").rename(folder)
    (only,) = folder.iterdir()
    return only


def _download_sdist(name: str, version: str, sha256: str, folder: Path) -> None:
    what = f"{name}=={version}"
    for backend in _BACKENDS:
        (folder / "backend" / backend).mkdir(parents=True)
        text = _BACKEND.format(name=name.replace("-", "_"), version=version)
        for module in ("__init__", "build_meta"):
            (folder / "backend" / backend / f"{module}.py").write_text(text)
    arguments = ["download", what, "--no-deps", "--no-binary=:all:", "--no-build-isolation"]
    arguments += ["--use-pep517", f"--dest={folder / 'download'}"]
    reason = pip(what, arguments, folder, env={"PYTHONPATH": str(folder / "backend")})
    if reason is not None:
        pytest.skip(reason)
    (archive,) = (folder / "download").iterdir()
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        raise ValueError(f"{archive.name} has the SHA-256 {found}, not {sha256}")
    _unpack(archive, folder / "content")


def _download_debian(
    name: str, version: str, inner: str, keep: Sequence[str], folder: Path
) -> None:
    what = f"{name}={version}"
    if shutil.which("apt-get") is None:
        pytest.skip(f"cannot fetch {what}: no apt-get here")
    message = _run(["apt-get", "--quiet", "download", what], {}, folder)
    if message is not None:
        pytest.skip(f"cannot fetch {what}: {_last_line(message)}")
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, folder / "package"], check=True)
    (archive,) = (folder / "package").rglob(inner)
    _unpack(archive, folder / "content", keep)


def _unpack(archive: Path, folder: Path, keep: Sequence[str] = ("",)) -> None:
    """Unpacks what lies in one folder in the archive, or those parts of it."""
    with tarfile.open(archive) as file:
        members = [m for m in file if m.name.partition("/")[2].startswith(tuple(keep))]
        file.extractall(folder, members, filter="data")


def pip(
    what: str,
    arguments: Sequence[str],
    folder: Path,
    *,
    python: str = sys.executable,
    env: Mapping[str, str] | None = None,
    is_everywhere: bool = True,
) -> str | None:
    """Runs pip; None, or why ``what`` cannot be had, for a skip.

    Args:
      is_everywhere: the index has it if it answers: when it is not found, nobody answers, and
        the index is not asked again.
    """
    if _unreachable:
        return f"{what} was not fetched: {_unreachable[0]}"
    command = [python, "-m", "pip", *arguments, "--retries=0", "--timeout=20"]
    command += ["--disable-pip-version-check", "--quiet"]
    message = _run(command, env or {}, folder)
    if message is None:
        return None
    if is_everywhere and ("from versions: none" in message or "No module named pip" in message):
        _unreachable.append(f"pip found nothing for {what} either")
    return f"cannot fetch {what}: {_last_line(message)}"


def _run(command: Sequence[str], env: Mapping[str, str], folder: Path) -> str | None:
    """None, or what a command that failed has printed."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr or done.stdout or "no message"


def _last_line(message: str) -> str:
    return message.strip().splitlines()[-1]


@functools.cache
def python_headers() -> str:
    """The folder of Python.h, which C of Python packages may include; or skips."""
    import sysconfig

    folder = sysconfig.get_paths()["include"]
    if not Path(folder, "Python.h").is_file():
        pytest.skip(f"no Python.h in {folder}")
    return folder
