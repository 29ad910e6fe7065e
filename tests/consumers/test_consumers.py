"""Projects that use jaxc's headers and host, each built and run as a user does it."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxc
from jaxc import __main__ as command_line

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
STRICT = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]

#: Tests of the consumers that have the host.
HOST_TESTS = ["call_by_frame", "call_by_host"]

Build = Callable[..., Path]
c_only = pytest.mark.c_only


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here")
    return found


def run(
    *command: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env)


def output(*command: str | Path) -> str:
    """What a command prints; the test fails with all its output when the command does."""
    done = run(*command)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def question(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "jaxc", *arguments)


def install(folder: Path, *options: str) -> Path:
    """jaxc, installed by CMake from this checkout; returns the prefix."""
    cmake = program("cmake")
    program("cc")
    output(cmake, "-S", ROOT, "-B", folder / "build", "-DCMAKE_INSTALL_LIBDIR=lib", *options)
    output(cmake, "--build", folder / "build")
    output(cmake, "--install", folder / "build", "--prefix", folder / "prefix")
    return folder / "prefix"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def headers_prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("headers"), "-DJAXC_BUILD_HOST=OFF")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The consumers, away from this checkout."""
    ignore = shutil.ignore_patterns("__pycache__", "*.py")
    return Path(shutil.copytree(HERE, tmp_path / "consumers", ignore=ignore))


@pytest.fixture
def build(sources: Path) -> Build:
    """Builds a consumer and runs its tests; returns its build folder."""

    def build(consumer: str, *options: str, tests: list[str]) -> Path:
        cmake, folder = program("cmake"), sources / "build"
        output(cmake, "-S", sources / consumer, "-B", folder, *options)
        output(cmake, "--build", folder)
        report = output(program("ctest"), "--test-dir", folder, "--output-on-failure")
        assert re.findall(r"Test +#\d+: (\w+) \.+ +Passed", report) == tests
        return folder

    return build


def configure_error(sources: Path, *options: str) -> str:
    """What CMake says of the find_package consumer, which must not configure; one line."""
    cmake = program("cmake")
    done = run(cmake, "-S", sources / "find_package", "-B", sources / "refused", *options)
    assert done.returncode != 0
    return " ".join(done.stderr.split())


# ---- installed by CMake ----


@c_only
def test_an_installation_has_every_public_header(prefix: Path) -> None:
    expected = {p.name for p in (ROOT / "include" / "jaxc").glob("*.h")}
    assert {p.name for p in (prefix / "include" / "jaxc").iterdir()} == expected


@c_only
def test_an_installation_has_the_host_and_the_program(prefix: Path) -> None:
    assert (prefix / "lib" / "libjaxc_host.a").is_file()
    done = run(prefix / "bin" / "jaxc-run", "--help")
    assert (done.returncode, done.stdout[:15]) == (0, "usage: jaxc-run"), done.stderr


@c_only
def test_an_installation_without_the_host_has_headers_and_packages_only(
    headers_prefix: Path,
) -> None:
    files = {str(p.relative_to(headers_prefix)) for p in headers_prefix.rglob("*.*")}
    rest = {f for f in files if not f.startswith("include/jaxc")}
    assert rest == {
        "lib/cmake/jaxc/jaxcConfig.cmake",
        "lib/cmake/jaxc/jaxcConfigVersion.cmake",
        "lib/cmake/jaxc/jaxcTargets.cmake",
        "lib/pkgconfig/jaxc.pc",
    }


@c_only
def test_find_package_gives_headers_and_host(prefix: Path, build: Build) -> None:
    build("find_package", f"-DCMAKE_PREFIX_PATH={prefix}", tests=HOST_TESTS)


@c_only
def test_find_package_gives_headers_where_there_is_no_host(
    headers_prefix: Path, build: Build
) -> None:
    build("find_package", f"-DCMAKE_PREFIX_PATH={headers_prefix}", tests=["call_by_frame"])


@c_only
def test_an_installation_can_be_moved(
    headers_prefix: Path, tmp_path: Path, build: Build
) -> None:
    moved = shutil.copytree(headers_prefix, tmp_path / "elsewhere" / "jaxc")
    folder = build("find_package", f"-DCMAKE_PREFIX_PATH={moved}", tests=["call_by_frame"])
    assert str(headers_prefix) not in (folder / "CMakeCache.txt").read_text()
    assert str(headers_prefix) not in "".join(p.read_text() for p in moved.rglob("*.cmake"))


@c_only
def test_the_same_minor_version_is_accepted(headers_prefix: Path, build: Build) -> None:
    wanted = ".".join(jaxc.__version__.split(".")[:2])
    build(
        "find_package",
        f"-DCMAKE_PREFIX_PATH={headers_prefix}",
        f"-DJAXC_WANTED_VERSION={wanted}",
        tests=["call_by_frame"],
    )


@c_only
@pytest.mark.parametrize("wanted", ["0.0.9", "0.99", "1.0"])
def test_another_minor_version_is_refused(
    wanted: str, headers_prefix: Path, sources: Path
) -> None:
    text = configure_error(
        sources, f"-DCMAKE_PREFIX_PATH={headers_prefix}", f"-DJAXC_WANTED_VERSION={wanted}"
    )
    assert f'compatible with requested version "{wanted}"' in text
    assert f"jaxcConfig.cmake, version: {jaxc.__version__}" in text


@c_only
def test_the_host_is_refused_where_it_was_not_built(
    headers_prefix: Path, sources: Path
) -> None:
    text = configure_error(
        sources, f"-DCMAKE_PREFIX_PATH={headers_prefix}", "-DJAXC_WANTED_COMPONENTS=host"
    )
    assert "this jaxc was built with JAXC_BUILD_HOST=OFF" in text


def pkg_config(prefix: Path, *arguments: str) -> list[str]:
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    done = run(program("pkg-config"), *arguments, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@c_only
def test_pkg_config_gives_the_headers(headers_prefix: Path, sources: Path) -> None:
    flags = pkg_config(headers_prefix, "--cflags", "jaxc")
    files = [sources / "plain_cc" / name for name in ("rms_norm.c", "call_by_frame.c")]
    output(program("cc"), *STRICT, *flags, *files, "-lm", "-o", sources / "call")
    assert output(sources / "call") == "ok\n"
    assert pkg_config(headers_prefix, "--modversion", "jaxc") == [jaxc.__version__]


@c_only
def test_pkg_config_gives_the_host(prefix: Path, sources: Path) -> None:
    flags = pkg_config(prefix, "--cflags", "--libs", "jaxc_host")
    files = [sources / "plain_cc" / "rms_norm.c", sources / "find_package" / "call_by_host.c"]
    output(program("cc"), *files, *flags, "-o", sources / "call")
    assert output(sources / "call") == "ok\n"


# ---- as a part of another project ----


@c_only
def test_add_subdirectory_gives_the_headers_and_changes_no_setting(build: Build) -> None:
    folder = build("add_subdirectory", f"-DJAXC_SOURCE={ROOT}", tests=["call_by_frame"])
    assert not list(folder.rglob("*.a"))


@c_only
def test_fetch_content_gives_the_headers(build: Build) -> None:
    options = [f"-DJAXC_SOURCE={ROOT}", "-DJAXC_BY_FETCH=ON"]
    build("add_subdirectory", *options, tests=["call_by_frame"])


@c_only
def test_a_part_of_a_project_can_have_the_host(build: Build) -> None:
    options = [f"-DJAXC_SOURCE={ROOT}", "-DJAXC_BUILD_HOST=ON"]
    build("add_subdirectory", *options, tests=HOST_TESTS)


@c_only
def test_a_part_of_a_project_is_not_installed_with_it(build: Build, tmp_path: Path) -> None:
    folder = build("add_subdirectory", f"-DJAXC_SOURCE={ROOT}", tests=["call_by_frame"])
    output(program("cmake"), "--install", folder, "--prefix", tmp_path / "prefix")
    files = [p.name for p in (tmp_path / "prefix").rglob("*") if p.is_file()]
    assert files == ["librms_norm.so"]


@c_only
def test_the_wheel_of_a_project_gets_no_python_module_of_jaxc(build: Build) -> None:
    options = [f"-DJAXC_SOURCE={ROOT}", "-DSKBUILD=2"]
    folder = build("add_subdirectory", *options, tests=["call_by_frame"])
    assert not list(folder.rglob("_jaxc*"))


# ---- C++ ----


@c_only
@pytest.mark.parametrize("standard", [14, 17, 20])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_cxx_reads_every_header_and_calls_a_handler(
    compiler: str, standard: int, headers_prefix: Path, build: Build
) -> None:
    build(
        "cxx",
        f"-DCMAKE_PREFIX_PATH={headers_prefix}",
        f"-DCMAKE_CXX_COMPILER={program(compiler)}",
        f"-DCMAKE_CXX_STANDARD={standard}",
        tests=["call_by_frame", "ask_api"],
    )


@c_only
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_handler_can_be_cxx(compiler: str, headers_prefix: Path, build: Build) -> None:
    headers = (headers_prefix / "include" / "jaxc").glob("*.h")
    if not any("decltype" in header.read_text() for header in headers):
        pytest.skip("JAXC_HANDLER is for C alone")
    build(
        "cxx",
        f"-DCMAKE_PREFIX_PATH={headers_prefix}",
        f"-DCMAKE_CXX_COMPILER={program(compiler)}",
        "-DJAXC_CXX_HANDLER=ON",
        tests=["call_by_frame", "ask_api"],
    )


# ---- a Python package ----


def installed(argument: str) -> str:
    done = question(argument)
    if done.returncode == 1:
        pytest.skip(f"jaxc is not installed here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.removesuffix("\n")


@c_only
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_plain_cc_builds_a_handler_without_warnings(compiler: str, sources: Path) -> None:
    include = installed("--include")
    files = [sources / "plain_cc" / name for name in ("rms_norm.c", "call_by_frame.c")]
    flags = [*STRICT, f"-I{include}"]
    output(program(compiler), *flags, *files, "-lm", "-o", sources / "call")
    assert output(sources / "call") == "ok\n"


def test_a_handler_of_plain_cc_runs_in_jax(sources: Path) -> None:
    library = sources / "rms_norm.so"
    flags = ["-std=c11", "-pedantic", "-shared", "-fPIC", f"-I{installed('--include')}"]
    source = sources / "plain_cc" / "rms_norm.c"
    output(program("cc"), *flags, source, "-lm", "-o", library)
    handler = ctypes.CDLL(str(library)).RmsNorm
    jax.ffi.register_ffi_target("consumers.RmsNorm", jax.ffi.pycapsule(handler), platform="cpu")
    x = np.array([3.0, 4.0], np.float32)
    call = jax.ffi.ffi_call("consumers.RmsNorm", jax.ShapeDtypeStruct(x.shape, x.dtype))
    np.testing.assert_allclose(call(x, eps=np.float32(0.5)), x / np.sqrt(13.0), rtol=1e-6)


def test_find_package_finds_the_python_package(build: Build) -> None:
    folder = Path(installed("--cmake"))
    build("find_package", f"-Djaxc_DIR={folder}", tests=HOST_TESTS)


def test_include_is_the_folder_of_the_headers() -> None:
    assert Path(installed("--include")) == jaxc.include_dir()


def test_version_is_the_version() -> None:
    done = question("--version")
    assert (done.returncode, done.stdout) == (0, f"{jaxc.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--headers"], "one of the arguments --include --lib --cmake --version is required"),
        (["--include", "x"], "unrecognized arguments: x"),
        (["--include", "--cmake"], "argument --cmake: not allowed with argument --include"),
        ([], "one of the arguments --include --lib --cmake --version is required"),
    ],
)
def test_what_means_nothing_is_usage_and_status_2(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("usage: python -m jaxc ")
    assert text in error


@pytest.mark.parametrize(
    ("argument", "file"),
    [
        ("--include", "include/jaxc/jaxc.h"),
        ("--lib", "lib/libjaxc_host.a"),
        ("--cmake", "cmake/jaxcConfig.cmake"),
    ],
)
def test_a_folder_that_is_missing_is_status_1(
    argument: str,
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command_line, "_PACKAGE", tmp_path)
    assert command_line.main([argument]) == 1
    assert capsys.readouterr() == (
        "",
        f"python -m jaxc: {tmp_path / file} is missing: install jaxc\n",
    )
