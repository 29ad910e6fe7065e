"""Compilers that are missing, fail or are killed; the cache under every kind of stress."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxc
from jaxc import cache, compiler, generate
from jaxc.declare import Unit, declare

SOURCE = "void add(int n, const float x[n], float a, float y[n]) {\n" \
         "  for (int i = 0; i < n; i++) y[i] = x[i] + a;\n}\n"  # fmt: skip


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("JAXC_CACHE_DIR", str(folder))
    return folder


def entries(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir() if not p.name.startswith("driver-")}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def fake_compiler(path: Path, script: str) -> str:
    write(path, "#!/bin/sh\n" + script)
    path.chmod(0o755)
    return str(path)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


# ---- files and edits ----


def test_an_edited_file_is_a_new_library_and_the_old_one_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "add.c", SOURCE)
    first = jaxc.load(path).add
    write(path, SOURCE.replace("x[i] + a", "x[i] - a"))
    second = jaxc.load(path).add
    x = jnp.ones(2)
    np.testing.assert_array_equal(second(x, 1.0), [0, 0])
    np.testing.assert_array_equal(first(x, 1.0), [2, 2])
    assert first.targets != second.targets


def test_the_same_source_elsewhere_has_the_same_targets(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = jaxc.load(write(tmp_path / "a" / "add.c", SOURCE)).add
    # another process, another folder, another comment: a program finds its target
    other = write(tmp_path / "b" / "add.c", "/* a comment */\n\n" + SOURCE)
    done = python(f"import jaxc; print(jaxc.load({str(other)!r}).add.targets)")
    assert done.stdout.strip() == str(first.targets), done.stderr


def test_two_builds_of_one_source_in_a_process_do_not_mix(tmp_path: Path) -> None:
    source = SOURCE.replace("x[i] + a", "x[i] + a + K")
    one = jaxc.compile(source, define={"K": 1}).add
    two = jaxc.compile(source, define={"K": 2}).add
    assert one.targets != two.targets
    assert one(jnp.zeros(1), 0.0)[0] == 1
    assert two(jnp.zeros(1), 0.0)[0] == 2
    plain = jaxc.compile(SOURCE, name="twin").add
    fenced = jaxc.compile(SOURCE.replace("\n}", "\n/* same tokens */ }"), name="twin").add
    assert plain.targets["cpu"] != fenced.targets["cpu"]
    assert fenced(jnp.zeros(1), 5.0)[0] == 5


def test_several_files_are_one_library(tmp_path: Path) -> None:
    library = write(
        tmp_path / "lib.c",
        "static int twice(int x) { return 2 * x; }\n"
        "int helper(int x) { return twice(x) + 1; }\n"
        "void scale(int n, const float *x, float *y, float a) {\n"
        "  for (int i = 0; i < n; i++) y[i] = a * x[i];\n}\n",
    )
    second = write(
        tmp_path / "second.c",
        "int helper(int x);\nstatic int twice(int x) { return 3 * x; }\n"
        "int outer(int x) { return helper(x) + twice(x); }\n",
    )
    bounds = write(
        tmp_path / "bounds.h", "void scale(int n, const float x[n], float y[n], float a);\n"
    )
    lib = jaxc.load([library, second, bounds])
    assert lib.helper(5) == 11
    assert lib.outer(5) == 11 + 15
    np.testing.assert_array_equal(lib.scale(jnp.ones(2), 3.0), [3, 3])
    with pytest.raises(AttributeError, match=r"lib.c:3: 'scale' cannot be called from JAX: it has "
                       r"parameter 'x' \(const float \*x\) without a bound"):  # fmt: skip
        _ = jaxc.load(library).scale


def test_headers_macros_flags_and_libraries(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    write(tmp_path / "include" / "k.h", "#define K 7\nstatic const int two = 2;\n")
    path = write(
        tmp_path / "f.c",
        '#include "k.h"\nfloat f(float x) { return x + K + two + M + FLAG; }\n',
    )
    lib = jaxc.load(
        path, include=[tmp_path / "include"], define={"M": 100}, flags=["-DFLAG=1000"]
    )
    assert lib.f(0.0) == 1109
    assert (
        jaxc.compile("double cbrt(double);", name="m", libraries=["m"]).cbrt.signature
        == "()->()"
    )


def test_a_string_where_a_list_is_meant_is_refused() -> None:
    with pytest.raises(TypeError, match=r"flags must be a list, got '-O1'; write \['-O1'\]"):
        jaxc.compile(SOURCE, flags="-O1")  # type: ignore[arg-type]


def test_a_user_s_function_is_not_replaced_by_a_library_s(x64: None) -> None:
    lib = jaxc.compile("double j0(double x) { return x + 1; }\n"
                       "double twice(double x) { return 2 * j0(x); }")  # fmt: skip
    assert lib.j0(1.0) == 2
    assert lib.twice(1.0) == 4


def test_macros_of_the_user_do_not_reach_the_generated_code(x64: None) -> None:
    lib = jaxc.compile(
        "#define data 1\n#define row 2\n#define strides 3\n#define NULL 4\n#define int64_t 5\n"
        "#define jaxci_row 6\n#define name 7\n#define return_ return\n#define x y\n"
        "double f(double x) { return_ x; }\n"
    )
    assert lib.f(2.0) == 2


def test_names_of_the_user_do_not_collide_with_ours(x64: None) -> None:
    lib = jaxc.compile(
        "double data(double x, double row) { return x - row; }\n"
        "double functions(double count) { return count; }\n"
        "double handler(double handler) { return handler; }\n"
        "double jaxc(double dims) { return dims; }\n"
        "int status(int n, const double fault[n], double *text) { *text = n; return 0; }\n"
        "void p_x(int n, const double x[n], double data, double strides[n]) {}\n"
    )
    assert lib.data(3.0, 1.0) == 2
    assert lib.functions(1.0) == lib.handler(1.0) == lib.jaxc(1.0) == 1
    assert lib.status(jnp.ones(3)) == 3
    assert lib.p_x(jnp.ones(3), 1.0).shape == (3,)


# ---- the compiler's own words ----


def test_a_syntax_error_shows_the_user_s_file_and_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "bad.c", "#include <math.h>\n\ndouble f(double x) {\n  return x +;\n}\n"
    )
    with pytest.raises(RuntimeError, match=r"compiling bad.c: the compiler failed") as error:
        jaxc.load(path)
    assert f"{path}:4:" in str(error.value)
    assert "return x +;" in str(error.value)


def test_an_error_in_text_shows_its_name_and_line() -> None:
    with pytest.raises(RuntimeError, match=r"typo.c:2:"):
        jaxc.compile("\ndouble f(double x) { return y; }", name="typo")


def test_an_undeclared_bound_is_the_compiler_s_error() -> None:
    with pytest.raises(RuntimeError, match=r"inline\.c:1:.*\bm\b"):
        jaxc.compile("void f(int n, const float x[n], float y[m]) {}")


def test_an_undeclared_function_is_an_error_and_not_an_int() -> None:
    with pytest.raises(RuntimeError, match="implicit declaration of function"):
        jaxc.compile("double f(double x) { return mystery(x); }")


def test_a_missing_header_is_the_preprocessor_s_error() -> None:
    with pytest.raises(RuntimeError, match=r"preprocessing inline.c: .*(?s:.*)nowhere.h"):
        jaxc.compile('#include "nowhere.h"\n')


def test_a_missing_definition_names_the_symbol() -> None:
    with pytest.raises(OSError, match="No file that was loaded defines 'mystery'"):
        jaxc.compile("double mystery(double x); double f(double x) { return mystery(x); }")


def test_all_missing_definitions_are_named_at_once() -> None:
    source = "double b(double); double a(double); double f(double x) { return a(x) + b(x); }"
    with pytest.raises(OSError, match="No file that was loaded defines 'a', 'b': add the file"):
        jaxc.compile(source)


def test_symbols_of_the_process_resolve(x64: None) -> None:
    lib = jaxc.compile(
        "int Py_IsInitialized(void);\nint f(int x) { return x * Py_IsInitialized(); }"
    )
    assert lib.f(3) == 3


def test_what_no_handler_needs_may_be_missing(x64: None) -> None:
    lib = jaxc.compile(
        "struct s; double mystery(struct s *); double g(struct s *p) { return mystery(p); }\n"
        "double f(double x) { return x; }"
    )
    assert lib.f(1.0) == 1


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        jaxc.load(tmp_path / "none.c")
    with pytest.raises(FileNotFoundError):
        jaxc.load(tmp_path / "none.so")


# ---- compilers ----


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_each_compiler_gives_the_same(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    lib = jaxc.compile(SOURCE, name=f"with_{name}", compiler=name)
    np.testing.assert_array_equal(lib.add(jnp.ones(3), 1.0), [2, 2, 2])


def test_zig_gives_the_same() -> None:
    pytest.importorskip("ziglang", reason="the ziglang wheel is not installed")
    lib = jaxc.compile(SOURCE, name="with_zig", compiler="zig")
    np.testing.assert_array_equal(lib.add(jnp.ones(3), 1.0), [2, 2, 2])


def test_cc_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    fake = fake_compiler(tmp_path / "mycc", f'echo "$@" >> {log}\nexec gcc "$@"\n')
    monkeypatch.setenv("CC", fake)
    jaxc.compile(SOURCE, name="asked")
    assert "-shared" in log.read_text()


def test_a_requested_compiler_that_is_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(RuntimeError, match="the C compiler compiler='nocc' is not there"):
        jaxc.compile(SOURCE, compiler="nocc")
    monkeypatch.setenv("CC", "nocc")
    with pytest.raises(RuntimeError, match=r"the C compiler \$CC='nocc' is not there"):
        jaxc.compile(SOURCE)


def test_no_compiler_says_what_was_tried_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    text = r"no C compiler: looked for \$CC, gcc, clang, cc .*pip install jaxc\[zig\]"
    with pytest.raises(RuntimeError, match=text):
        jaxc.compile(SOURCE)


def test_a_compiler_that_is_killed_is_named_with_the_signal(tmp_path: Path) -> None:
    fake = fake_compiler(
        tmp_path / "dies", 'case "$*" in *--version*) echo 1;; *) kill -9 $$;; esac'
    )
    with pytest.raises(
        RuntimeError, match=r"preprocessing inline\.c: the compiler was killed by SIGKILL"
    ):
        jaxc.compile(SOURCE, compiler=fake)
    fake = fake_compiler(tmp_path / "dies_later", 'case "$*" in *--version*|*" -E "*) exec gcc "$@";; '
                         "*) kill -9 $$;; esac")  # fmt: skip
    with pytest.raises(RuntimeError, match="the compiler was killed by SIGKILL"):
        jaxc.compile(SOURCE, name="killed", compiler=fake)


def test_a_compiler_that_fails_in_silence_is_still_an_error(tmp_path: Path) -> None:
    fake = fake_compiler(
        tmp_path / "mute", 'case "$*" in *--version*) echo 1;; *) exit 3;; esac'
    )
    with pytest.raises(RuntimeError, match="the compiler failed with status 3"):
        jaxc.compile(SOURCE, compiler=fake)


def test_a_failed_build_leaves_nothing_and_the_next_works(cache_dir: Path) -> None:
    with pytest.raises(RuntimeError):
        jaxc.compile("double f(double x) { return y; }")
    assert not cache_dir.exists() or entries(cache_dir) == set()
    jaxc.compile(SOURCE)
    assert len(entries(cache_dir)) == 1


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_generated_c_has_no_warnings(tmp_path: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    source = (Path(__file__).parent / "test_function.py").read_text().split('r"""')[1]
    source = source.split('"""')[0]
    # ISO C and clang 14 have no _Float16
    source = source.replace("ROUND_TRIP(float16, _Float16)", "")
    found = compiler.find_compiler(name)
    include = f"-I{jaxc.include_dir()}"
    text = found.run(
        [include, "-E", "-x", "c", "-"], what="test", text=f'#line 1 "k.c"\n{source}'
    )
    (descriptions,) = declare([Unit("k.c", text, source)])
    assert len(descriptions) > 40
    strict = [
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Werror",
        "-Wno-unknown-pragmas",
    ]
    unit = write(
        tmp_path / "unit.i", f'{text}\n# 1 "loops.c"\n{generate.loops(descriptions)}\n'
    )
    found.run([*strict, "-x", "cpp-output", "-fsyntax-only", str(unit)], what="loops")
    table = write(tmp_path / "table.c", generate.table("k", "0", "0", descriptions))
    found.run([*strict, include, "-fsyntax-only", str(table)], what="table")
    driver = write(tmp_path / "driver.c", generate.DRIVER)
    found.run([*strict, include, "-fsyntax-only", str(driver)], what="driver")


# ---- the cache ----


def test_a_second_load_compiles_nothing(cache_dir: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "add.c", SOURCE)
    jaxc.load(path)
    before = {p: p.stat().st_mtime_ns for p in cache_dir.rglob("*")}
    log = tmp_path / "log"
    done = python(
        f"""
        import subprocess, jaxc
        run = subprocess.run
        def spy(command, **kwargs):
            open({str(log)!r}, "a").write(" ".join(command) + "\\n")
            return run(command, **kwargs)
        subprocess.run = spy
        print(jaxc.load({str(path)!r}).add.signature)
        import sys
        print("pycparser" in sys.modules)
        """
    )
    assert done.stdout.split() == ["(n),()->(n)", "False"], done.stderr
    for line in log.read_text().splitlines():
        assert " -E " in line or "--version" in line
    assert {p: p.stat().st_mtime_ns for p in cache_dir.rglob("*")} == before


def test_many_processes_fill_the_cache_at_once(cache_dir: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "add.c", SOURCE)
    code = f"""
        import jaxc, jax.numpy as jnp
        print(jaxc.load({str(path)!r}).add(jnp.ones(2), 1.0))
    """
    running = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]  # fmt: skip
    for process in running:
        out, err = process.communicate(timeout=300)
        assert (out.strip(), process.returncode) == ("[2. 2.]", 0), err
    assert len(entries(cache_dir)) == 1
    assert not list(cache_dir.glob(".new-*"))


def test_threads_may_load_at_once(cache_dir: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    sources = [SOURCE.replace("+ a", f"+ a + {k % 3}") for k in range(12)]
    with ThreadPoolExecutor(12) as pool:
        libraries = list(pool.map(jaxc.compile, sources))
    for k, lib in enumerate(libraries):
        assert lib.add(jnp.zeros(1), 1.0)[0] == 1 + k % 3
    assert len(entries(cache_dir)) == 3


def test_a_damaged_entry_is_built_again(cache_dir: Path) -> None:
    code = f"""
        import jaxc, jax.numpy as jnp
        lib = jaxc.compile({SOURCE!r}, name="damaged")
        print(lib.path, lib.add(jnp.ones(1), 1.0))
    """
    path = Path(python(code).stdout.split()[0])
    path.write_bytes(path.read_bytes()[:1000])  # no process has it mapped
    done = python(code)
    assert done.stdout.split() == [str(path), "[2.]"], done.stderr


def refused(reason: str) -> Any:
    return pytest.warns(RuntimeWarning, match=f"jaxc does not use the cache folder .*{reason}")


def test_a_folder_that_others_may_write_is_not_used(cache_dir: Path) -> None:
    cache_dir.mkdir()
    cache_dir.chmod(0o777)
    with refused(r"others may write it \(chmod go-w\)"):
        lib = jaxc.compile(SOURCE, name="public")
    assert lib.add(jnp.ones(1), 1.0)[0] == 2
    assert list(cache_dir.iterdir()) == []


def test_a_folder_of_someone_else_is_not_used(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_dir.mkdir()
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    with refused("it belongs to user"):
        jaxc.compile(SOURCE, name="foreign")
    assert list(cache_dir.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "file", "")
    monkeypatch.setenv("JAXC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with refused("Not a directory"):
        assert jaxc.compile(SOURCE, name="nowhere").add(jnp.ones(1), 1.0)[0] == 2


def test_a_full_or_read_only_folder_is_a_warning(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "_publish", full)
    with refused("No space left on device"):
        assert jaxc.compile(SOURCE, name="full").add(jnp.ones(1), 1.0)[0] == 2


def test_a_truly_full_file_system_is_a_warning(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k,mode=700", "tmpfs", str(mount)],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        code = f"""
            import jaxc, jax.numpy as jnp
            print(jaxc.compile({SOURCE!r}).add(jnp.ones(1), 1.0))
        """
        done = python(code, JAXC_CACHE_DIR=str(mount))
        assert done.stdout.strip() == "[2.]", done.stderr
        assert "No space left" in done.stderr
    finally:
        subprocess.run(["umount", str(mount)], check=False)


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAXC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    if sys.platform == "linux":
        assert cache.cache_dir() == Path("/somewhere/jaxc")


# ---- a JAX that has changed inside ----


def test_without_private_names_of_jax_the_basic_call_works() -> None:
    done = python(
        f"""
        import jax
        from jax._src import core
        names = "auto_insert_reshard standard_insert_pvary standard_vma_rule ManualAxisType"
        gone = {{n: vars(core).pop(n) for n in names.split() if n in vars(core)}}
        import jaxc
        vars(core).update(gone)
        import jax.numpy as jnp
        f = jaxc.compile({SOURCE!r}).add
        print(jax.vmap(jax.jit(f), (0, None))(jnp.ones((2, 1)), 1.0))
        """
    )
    assert done.stdout.split() == ["[[2.]", "[2.]]"], done.stderr


# ---- built libraries ----


def test_a_built_library_is_loaded_through_the_same_table(tmp_path: Path) -> None:
    built = jaxc.compile(SOURCE, name="ahead")
    copy = tmp_path / "ahead.so"
    shutil.copy(built.path, copy)
    code = f"""
        import jaxc, jax.numpy as jnp
        lib = jaxc.load({str(copy)!r})
        print(lib.add.signature, lib.add(jnp.ones(1), 1.0), lib.add.targets)
    """
    done = python(code, PATH="/nonexistent")
    assert done.stdout.strip() == f"(n),()->(n) [2.] {built.add.targets}", done.stderr


def test_what_is_no_kernel_library_is_refused(tmp_path: Path) -> None:
    garbage = write(tmp_path / "garbage.so", "not a library")
    with pytest.raises(OSError, match=r"cannot load garbage\.so"):
        jaxc.load(garbage)
    plain = tmp_path / "plain.so"
    source = write(tmp_path / "plain.c", "int add(int a, int b) { return a + b; }")
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(plain)], check=True)
    with pytest.raises(
        ValueError, match="is no kernel library: it exports no 'jaxc_library_table'"
    ):
        jaxc.load(plain)
    with pytest.raises(ValueError, match="a built library is loaded alone"):
        jaxc.load([plain, source])


CUDA_ONLY = r"""
#include <jaxc/library.h>
static jaxc_abi_error *run(jaxc_abi_call_frame *frame) { return (void *)((char *)frame - (char *)frame); }
static const jaxc_entry entries[] = {{"cuda", run}};
static const jaxc_parameter parameters[] = {{"return", "float", JAXC_ROLE_OUTPUT, JAXC_F32, 0, -1, NULL},
                                            {"x", "float x", JAXC_ROLE_INPUT, JAXC_F32, 0, -1, NULL}};
static const jaxc_function f = {.struct_size = sizeof(jaxc_function), .name = "f", .prototype = "float f(float x)",
  .file = "f.cu", .parameter_count = 2, .parameters = parameters, .entry_count = 1, .entries = entries};
static const jaxc_function *const functions[] = {&f};
extern const jaxc_library jaxc_library_table;
const jaxc_library jaxc_library_table = {.struct_size = sizeof(jaxc_library), .abi_version = JAXC_LIBRARY_ABI,
  .function_count = 1, .jaxc_version = "0", .name = "gpu", .hash = "1", .functions = functions};
"""


def test_a_library_without_an_entry_for_the_platform_says_which_it_has(tmp_path: Path) -> None:
    source = write(tmp_path / "gpu.c", CUDA_ONLY)
    library = tmp_path / "gpu.so"
    include = f"-I{jaxc.include_dir()}"
    subprocess.run(
        ["gcc", include, "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    function = jaxc.load(library).f
    text = r"f: no entry for platform 'cpu'; the library has entries for: cuda"
    for call in (function, jax.jit(function)):
        with pytest.raises(NotImplementedError, match=text):
            call(1.0)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (".struct_size = sizeof(jaxc_library), .abi_version = 99",
         "its table has version 99, this jaxc reads version 1"),
        (".struct_size = sizeof(jaxc_library), .abi_version = 1, .function_count = 3",
         "the library's table is damaged"),
        (".struct_size = sizeof(jaxc_library), .abi_version = 1, .function_count = -1",
         "the library's table is damaged"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_refused(tmp_path: Path, table: str, text: str) -> None:
    source = write(tmp_path / "t.c", "#include <jaxc/library.h>\nextern const jaxc_library "
                   f"jaxc_library_table;\nconst jaxc_library jaxc_library_table = {{{table}}};\n")  # fmt: skip
    library = tmp_path / f"{abs(hash(table))}.so"
    include = f"-I{jaxc.include_dir()}"
    subprocess.run(
        ["gcc", include, "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    with pytest.raises(ValueError, match=text):
        jaxc.load(library)


def test_the_library_shows_its_functions_and_its_c() -> None:
    lib = jaxc.compile(
        SOURCE + "void bad(int n, const float *x, float y[n]) {}\n", name="shown"
    )
    assert list(lib) == ["add"]
    assert "add" in lib
    assert "bad: refused, it has parameter 'x'" in repr(lib)
    assert "jaxci_rows_add" in lib.source
    assert "JAXC_ROLE_INPUT" in lib.source
    with pytest.raises(AttributeError, match=r"has no function 'adt'; did you mean 'add'\?"):
        _ = lib.adt
    with pytest.raises(KeyError, match="'bad' cannot be called from JAX"):
        _ = lib["bad"]
