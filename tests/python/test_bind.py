"""jaxc.bind: functions of libraries that are there already, and at addresses."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxc
from jaxc.compiler import find_compiler

pytestmark = pytest.mark.usefixtures("x64")

ROOT = Path(__file__).resolve().parents[2]
#: What XLA makes of a C function's error, at once or when the result is waited for.
FAILED = (ValueError, jax.errors.JaxRuntimeError)
COS = "double cos(double x);"

#: A library with one number in it, so that builds of it can be told apart. y0 is also a
#: function of libm, which every Python has loaded.
THING = """
static int calls;
double y0(double x) { return x + NUMBER; }
void times(int n, int m, const float *x, float *y) {
  for (int i = 0; i < n * m; i++) y[i] = NUMBER * x[i];
}
int refuse(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) {
    if (x[i] < 0) return 40 + NUMBER;
    y[i] = x[i];
  }
  return 0;
}
const char *complain(double x, double *y) {
  *y = x;
  return x < 0 ? "is negative" : 0;
}
double y0_jvp(double x, double d_x) { return 0 * x + d_x * NUMBER; }
double count(double x) { return x + ++calls; }
"""
PROTOTYPES = """
double y0(double x);
double y0_jvp(double x, double d_x);
/* Times a number. */
void times(int n, int m, const float x[n][m], float y[n][m]);
int refuse(int n, const double x[n], double y[n]);
#pragma jaxc scalar(y)
const char *complain(double x, double *y);
#pragma jaxc serial
double count(double x);
"""


def build(path: Path, number: int, extra: str = "", soname: str = "libthing.so.1") -> Path:
    """A shared library, as another project would have made it, replaced as a linker does."""
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    source = path.with_suffix(".c")
    source.write_text(extra + THING)
    arguments = ["-shared", "-fPIC", f"-DNUMBER={number}", "-fno-builtin", str(source)]
    arguments += ["-o", str(path)]
    if sys.platform == "linux":
        arguments.append(f"-Wl,-soname,{soname}")
    find_compiler().run(arguments, what="building the test's library")
    return path


@pytest.fixture
def thing(tmp_path: Path) -> Path:
    return build(tmp_path / "libthing.so", 3)


# By name.


@pytest.mark.parametrize("name", ["m", "libm.so.6"])
def test_a_function_of_a_library_by_name(name: str) -> None:
    if name != "m" and sys.platform != "linux":
        pytest.skip("libm.so.6 is what Linux calls it")
    lib = jaxc.bind(COS + "double atan2(double y, double x);", name)
    x = np.linspace(-3, 3, 12).reshape(3, 4)
    np.testing.assert_allclose(lib.cos(x), np.cos(x), 1e-15)
    np.testing.assert_allclose(jax.jit(lib.cos)(x), np.cos(x), 1e-15)
    got = jax.vmap(lib.atan2, (0, None))(x, 2.0)
    np.testing.assert_allclose(got, np.arctan2(x, 2), 1e-15)
    assert lib.atan2.signature == "(),()->()"
    jaxc.check(lib.cos, 0.5)


def test_several_libraries() -> None:
    lib = jaxc.bind(COS + "int abs(int x);", ["m", "c"])
    assert (lib.cos(0.0), lib.abs(-3)) == (1, 3)


def test_the_first_library_of_a_list_that_has_a_function_gives_it(thing: Path) -> None:
    for libraries, expected in (([thing, "m"], 3), (["m", thing], -np.inf)):
        assert jaxc.bind("double y0(double x);", libraries).y0(0.0) == expected


def test_headers_macros_and_flags(tmp_path: Path) -> None:
    (tmp_path / "real.h").write_text("typedef REAL real;\n")
    lib = jaxc.bind(
        '#include "real.h"\n#include <math.h>\nreal sin(real x);\nWRONG',
        "m",
        include=[tmp_path],
        define={"REAL": "double"},
        flags=["-DWRONG="],
        compiler="gcc" if find_compiler().command[0] == "gcc" else None,
    )
    assert list(lib) == ["sin"]
    assert lib.sin(1.0) == np.sin(1.0)


def test_the_linker_says_which_library_is_not_there() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        jaxc.bind("double f(double x);", "no_such_thing")
    text = str(caught.value)
    assert "bind: there is no library 'no_such_thing': the linker looked for libno_such" in text
    assert "on Debian a library comes with its package, mostly libno_such_thing-dev" in text
    assert "no_such_thing" in text.partition("linking")[2].partition(":\n")[2]


def test_a_library_without_the_function_says_so_when_it_is_bound() -> None:
    with pytest.raises(ValueError, match=r"bind: library 'm' has no function 'cosine'$"):
        jaxc.bind(COS + "double cosine(double x);", "m")
    both = r"library 'm' and 'c' has no functions 'f', 'g'"
    with pytest.raises(ValueError, match=both):
        jaxc.bind("double f(double x); double g(double x);", ["m", "c"])


def test_only_the_runtime_of_a_library_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libbare.so.1 without libbare.so, which a development package would bring."""
    if sys.platform != "linux":
        pytest.skip("names of files are Linux's")
    folder = tmp_path / "lib"
    path = build(folder / "libbare.so.1", 7, soname="libbare.so.1")
    monkeypatch.setenv("LIBRARY_PATH", str(folder))
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: f"lib{name}.so.1")
    ctypes.CDLL(str(path))  # as if its folder were the system's
    assert jaxc.bind("double y0(double x);", "bare").y0(1.0) == 8


# By path.


@pytest.mark.parametrize("kind", [str, Path, ctypes.CDLL])
def test_a_function_of_a_file(thing: Path, kind: Any) -> None:
    lib = jaxc.bind(PROTOTYPES, kind(str(thing)))
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(lib.times(x), 3 * x)
    assert lib.times.signature == "(n,m)->(n,m)"
    assert lib.times.__doc__.startswith("Times a number.")
    assert lib.y0(1.0) == 4


def test_a_relative_path_and_a_file_of_this_folder(
    thing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(thing.parent)
    for name in ("./libthing.so", "libthing.so"):
        assert jaxc.bind(PROTOTYPES, name).y0(1.0) == 4


def test_folders_of_flags_are_looked_into(thing: Path) -> None:
    for flags in ([f"-L{thing.parent}"], ["-L", str(thing.parent)]):
        assert jaxc.bind(PROTOTYPES, "thing", flags=flags).y0(1.0) == 4


def test_the_library_s_own_function_is_called_and_not_one_of_the_same_name(
    thing: Path,
) -> None:
    """libm has a y0, which a loader prefers; it is minus infinity at 0."""
    assert jaxc.bind("double y0(double x);", thing).y0(0.0) == 3


def test_files_with_the_same_name_for_themselves_are_two_libraries(tmp_path: Path) -> None:
    paths = [build(tmp_path / f / "libthing.so", n) for f, n in (("a", 1), ("b", 2))]
    assert [float(jaxc.bind(PROTOTYPES, path).y0(0.0)) for path in paths] == [1, 2]


def test_a_library_that_is_built_again_is_seen(thing: Path) -> None:
    old = jaxc.bind(PROTOTYPES, thing)
    traced = jax.jit(lambda x: old.y0(x))
    assert traced(0.0) == 3
    build(thing, 4)
    new = jaxc.bind(PROTOTYPES, thing)
    assert (new.y0(0.0), old.y0(0.0), traced(0.0)) == (4, 3, 3)
    assert new.y0 != old.y0
    assert new.y0.targets != old.y0.targets
    build(thing, 3)
    assert jaxc.bind(PROTOTYPES, thing).y0 == old.y0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps is Linux's")
def test_a_library_that_others_had_loaded_before_it_was_built_again(thing: Path) -> None:
    handle = ctypes.CDLL(str(thing))
    build(thing, 5)
    assert jaxc.bind(PROTOTYPES, thing).y0(0.0) == 5
    assert handle is not None


def test_a_second_process_compiles_nothing(thing: Path) -> None:
    script = (
        "import sys, jax, jaxc; jax.config.update('jax_enable_x64', True)\n"
        "jaxc.build._compile = None\n"
        "print(jaxc.bind(sys.argv[1], sys.argv[2]).y0(0.0))"
    )
    jaxc.bind(PROTOTYPES, thing)
    command = [sys.executable, "-c", script, PROTOTYPES, str(thing)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.returncode) == ("3.0\n", 0), done.stderr


def test_a_file_that_is_not_there_or_no_library(tmp_path: Path) -> None:
    path = tmp_path / "libnot.so"
    with pytest.raises(FileNotFoundError, match=f"bind: no such library: {path}$"):
        jaxc.bind(COS, path)
    path.write_text("no library")
    with pytest.raises(OSError, match=rf"bind: '{path}' cannot be loaded: .*libnot\.so"):
        jaxc.bind("double f(double x);", path)


@pytest.mark.skipif(sys.platform != "linux", reason="how Linux reports it")
def test_a_library_that_needs_another_takes_it_from_the_list(tmp_path: Path) -> None:
    extra = "double elsewhere(double x);\ndouble two(double x) { return elsewhere(x); }\n"
    path = build(tmp_path / "libthing.so", 1, extra)
    with pytest.raises(OSError, match="undefined symbol: elsewhere"):
        jaxc.bind("double two(double x);", path)
    source = tmp_path / "elsewhere.c"
    source.write_text("double elsewhere(double x) { return 2 * x; }")
    other = tmp_path / "libelsewhere.so"
    arguments = ["-shared", "-fPIC", str(source), "-o", str(other)]
    find_compiler().run(arguments, what="building the test's library")
    assert jaxc.bind("double two(double x);", [path, other]).two(3.0) == 6


# What functions say and do.


def test_a_status_and_a_text_are_errors(thing: Path) -> None:
    lib = jaxc.bind(PROTOTYPES, thing)
    np.testing.assert_array_equal(lib.refuse(jnp.ones(3)), np.ones(3))
    with pytest.raises(FAILED, match="refuse: returned status 43"):
        lib.refuse(-jnp.ones(3)).block_until_ready()
    with pytest.raises(FAILED, match="complain: is negative"):
        lib.complain(-1.0).block_until_ready()


def test_derivatives_link_by_name_and_are_given_in_python(thing: Path) -> None:
    lib = jaxc.bind(PROTOTYPES + "double lgamma(double x);", [thing, "m"])
    assert jax.jvp(lib.y0, (1.0,), (2.0,))[1] == 6
    bessel = jaxc.bind("double j0(double x); double j1(double x);", "m")

    @bessel.j0.defjvp
    def j0_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (d_x,) = primals, tangents
        return bessel.j0(x), -bessel.j1(x) * d_x

    x = np.linspace(0.1, 5, 7)
    np.testing.assert_allclose(jax.vmap(jax.grad(bessel.j0))(x), -bessel.j1(x))
    with pytest.raises(Exception, match="lgamma"):
        jax.grad(lib.lgamma)(1.0)


def test_serial_functions_run_one_at_a_time_with_rows_in_order(thing: Path) -> None:
    lib = jaxc.bind(PROTOTYPES, thing)
    got = np.asarray(lib.count(jnp.zeros(1000)))
    np.testing.assert_array_equal(got, np.arange(1000) + got[0])


@pytest.mark.parametrize(
    ("prototype", "reason"),
    [
        ("void qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const "
         "void *));", r"'base' \(void \*base\) of type 'void', which no JAX array holds; write "
         "a small C file over it that takes numbers and arrays"),
        ("double apply(double x, double (*f)(double, void *));",
         "of a function pointer, which no JAX array holds; write a small C file over it that "
         "has the function it calls in C"),
        ("double integrate(const struct callback *f, double a, double b);",
         "of type 'struct callback', which no JAX array holds; write a small C file over it "
         "that makes what it points to, uses it and frees it"),
        ("int fclose(FILE *stream);", r"'stream' \(FILE \*stream\) of type 'struct FILE', .*"
         "write a small C file over it"),
        ("struct callback make(double x);", "returns 'struct callback', which no JAX array "
         "holds; write a small C file over it that returns numbers"),
        ("struct callback *make(double x);", "returns 'struct callback .*small C file"),
        ("int printf(const char *format, ...);", "takes a variable number of arguments"),
        ("double f(const double *x, int n);", r"without a bound: write 'const double x\[n\]'"),
    ],
)  # fmt: skip
def test_what_no_array_holds_is_refused_with_a_way_out(prototype: str, reason: str) -> None:
    head = "#include <stdio.h>\n#include <stdlib.h>\nstruct callback { double x; };\n"
    name = prototype.partition("(")[0].split()[-1].lstrip("*")
    lib = jaxc.bind(head + prototype + COS, "m")
    assert list(lib) == ["cos"]
    with pytest.raises(AttributeError, match=rf"'{name}' cannot be called .*{reason}"):
        getattr(lib, name)
    address = ctypes.CDLL(None).qsort
    with pytest.raises(ValueError, match=rf"'{name}' cannot be called .*{reason}"):
        jaxc.bind(head + prototype, address)


def test_bodies_pragmas_and_syntax_are_the_declarations_own_errors() -> None:
    with pytest.raises(ValueError, match=r"m\.h:2: 'twice' has a body, and jaxc\.bind takes"):
        jaxc.bind(COS + "\nstatic double twice(double x) { return 2 * x; }", "m")
    with pytest.raises(ValueError, match=r"m\.h:1: .*'cos' has no parameter 'y'"):
        jaxc.bind("#pragma jaxc static(y)\n" + COS, "m")
    with pytest.raises(RuntimeError, match=r"m\.h:1:"):
        jaxc.bind("double cos(real x);", "m")


@pytest.mark.parametrize(
    "library", [None, 3.5, True, "", [], ["m", 3.5], ["m", ""], [1], b"m", object()]
)
def test_what_is_no_library(library: Any) -> None:
    with pytest.raises(
        TypeError, match=r"bind: a library is a .*, a ctypes\.CDLL, or .*, got "
    ):
        jaxc.bind(COS, library)


def test_an_array_before_its_size_is_an_error_of_the_declarations() -> None:
    declarations = COS + "\nvoid last(const double x[n], int n, double y[n]);"
    message = (
        r"\.h:2: 'last' has parameter 'x' \(const double x\[n\]\) whose bound 'n' is a para"
    )
    for library in ("m", ctypes.CDLL(None)):
        with pytest.raises(ValueError, match=message):
            jaxc.bind(declarations, library)
    with pytest.raises(ValueError, match=r"inline\.c:1: 'f' .* put 'int n' before 'const dou"):
        jaxc.compile("double f(const double x[n], int n) { return n * x[0]; }")


def test_declarations_are_text(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match="declarations are C text, got PosixPath; the text of a"
    ):
        jaxc.bind(tmp_path / "m.h", "m")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="flags must be a list"):
        jaxc.bind(COS, "m", flags="-O2")


# By address.


@pytest.fixture
def libm() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m"))


@pytest.fixture(params=["function", "int", "numpy", "pointer"])
def cos(request: pytest.FixtureRequest, libm: ctypes.CDLL) -> Any:
    pointer = ctypes.cast(libm.cos, ctypes.c_void_p)
    assert pointer.value is not None
    return {
        "function": libm.cos,
        "int": pointer.value,
        "numpy": np.uint64(pointer.value),
        "pointer": pointer,
    }[request.param]


def test_an_address(cos: Any) -> None:
    lib = jaxc.bind(COS, cos)
    assert list(lib) == ["cos"]
    x = np.linspace(-3, 3, 1000)
    for function in (lib.cos, jax.jit(lib.cos), jax.vmap(lib.cos)):
        np.testing.assert_allclose(function(x), np.cos(x), 1e-15)
    assert jaxc.bind(COS, cos).cos == lib.cos
    (target,) = lib.cos.targets.values()
    assert target.startswith("jaxc:address/process")
    jaxc.check(lib.cos, 0.5)


def test_functions_of_arrays_status_and_dims_at_an_address(thing: Path) -> None:
    library = ctypes.CDLL(str(thing))
    times = jaxc.bind(
        "void times(int n, int m, const float x[n][m], float y[n][m]);", library.times
    ).times
    x = np.arange(12, dtype="float32").reshape(2, 2, 3)
    np.testing.assert_array_equal(times(x), 3 * x)
    np.testing.assert_array_equal(jax.vmap(times, 1, 1)(x), 3 * x)
    refuse = jaxc.bind("int refuse(int n, const double x[n], double y[n]);", library.refuse)
    np.testing.assert_array_equal(refuse.refuse(np.ones(3)), np.ones(3))
    with pytest.raises(FAILED, match=r"refuse: returned status 43.*row"):
        refuse.refuse(np.stack([np.ones(3), -np.ones(3)])).block_until_ready()
    complain = jaxc.bind(
        "#pragma jaxc scalar(y)\nconst char *complain(double x, double *y);", library.complain
    )
    with pytest.raises(FAILED, match="complain: is negative"):
        complain.complain(-1.0).block_until_ready()


def test_a_serial_function_at_an_address(thing: Path) -> None:
    count = jaxc.bind(
        "#pragma jaxc serial\ndouble count(double x);", ctypes.CDLL(str(thing)).count
    ).count
    got = np.asarray(count(jnp.zeros(1000)))
    np.testing.assert_array_equal(got, np.arange(1000) + got[0])


def test_static_values_and_dims_at_an_address(tmp_path: Path) -> None:
    source = tmp_path / "fill.c"
    source.write_text("void fill(int n, int k, double *y) { while (n--) *y++ = k; }")
    library = tmp_path / "libfill.so"
    arguments = ["-shared", "-fPIC", str(source), "-o", str(library)]
    find_compiler().run(arguments, what="building the test's library")
    fill = jaxc.bind(
        "#pragma jaxc static(k)\nvoid fill(int n, int k, double y[n]);",
        ctypes.CDLL(str(library)).fill,
    ).fill
    np.testing.assert_array_equal(fill(7, n=3), [7, 7, 7])


def test_a_rule_in_python_for_an_address(libm: ctypes.CDLL) -> None:
    lib = jaxc.bind("double sin(double x);", libm.sin)
    lib.sin.defjvp(lambda x, d: (lib.sin(*x), jnp.cos(x[0]) * d[0]))
    np.testing.assert_allclose(jax.grad(lib.sin)(0.5), np.cos(0.5))


def test_a_numba_cfunc() -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")

    @numba.cfunc("float64(float64, float64)")  # type: ignore[untyped-decorator]
    def hypotenuse(a: float, b: float) -> float:
        return float((a * a + b * b) ** 0.5)

    lib = jaxc.bind("double hypotenuse(double a, double b);", hypotenuse)
    del hypotenuse  # the process keeps it
    a = np.arange(5.0)
    np.testing.assert_allclose(jax.jit(jax.vmap(lib.hypotenuse, (0, None)))(a, 2.0),
                               np.hypot(a, 2))  # fmt: skip


def test_a_numba_cfunc_of_arrays() -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")
    types = numba.types

    @numba.cfunc(  # type: ignore[untyped-decorator]
        types.void(types.intc, types.CPointer(types.float64), types.CPointer(types.float64))
    )
    def reverse(n: int, x: Any, y: Any) -> None:
        for i in range(n):
            y[i] = x[n - 1 - i]

    lib = jaxc.bind("void reverse(int n, const double x[n], double y[n]);", reverse)
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(lib.reverse(x), x[:, ::-1])


NUMBA_OF = r"the numba cfunc says that its function is "


@pytest.mark.parametrize(
    ("prototype", "message"),
    [
        ("float ml(float a, float b);",
         r"bind: 'ml' is declared as float ml\(float a, float b\), but the numba cfunc says that "
         r"its function is \(float64, float64\) -> float64: parameter 'a' \(float a\) is float64 "
         "there$"),
        ("double ml(double a, float b);", r"parameter 'b' \(float b\) is float64 there"),
        ("float ml(double a, double b);", "it returns float64, not float$"),
        ("int ml(double a, double b);", "it returns float64, not int$"),
        ("double ml(double a);", "it takes 2 parameters, not 1$"),
        ("double ml(double a, double b, double c);", "it takes 2 parameters, not 3$"),
        ("double ml(double a, const double b[1]);", r"\(const double b\[1\]\) is float64 there"),
        ("double ml(double a, long b);", r"\(long b\) is float64 there"),
        ("#pragma jaxc static(b)\ndouble ml(double a, long b);", r"\(long b\) is float64 there"),
        ("double ml(double a, double _Complex b);", r"\(double _Complex b\) is float64 there"),
        ("typedef float real;\nreal ml(real a, real b);", r"\(real a\) is float64 there"),
    ],
)  # fmt: skip
def test_a_numba_cfunc_knows_its_type(prototype: str, message: str) -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")

    @numba.cfunc("float64(float64, float64)")  # type: ignore[untyped-decorator]
    def ml(a: float, b: float) -> float:
        return a * b

    assert jaxc.bind("double ml(double a, double b);", ml).ml(2.0, 3.0) == 6
    with pytest.raises(ValueError, match=message):
        jaxc.bind(prototype, ml)
    # Who gives the number has to know, and what is known then counts all the same.
    jaxc.bind(prototype, ml.address)
    with pytest.raises(ValueError, match=message):
        jaxc.bind(prototype, ml)


@pytest.mark.parametrize(
    ("types", "prototype", "message"),
    [
        ("void(intc, CPointer(float64), CPointer(float64))",
         "void f(int n, const float x[n], double y[n]);", r"\(const float x\[n\]\) is float64\* th"),
        ("void(intc, CPointer(float64), CPointer(float64))",
         "void f(long n, const double x[n], double y[n]);", r"\(long n\) is int32 there"),
        ("void(intc, CPointer(float64), CPointer(float64))",
         "void f(unsigned n, const double x[n], double y[n]);", r"\(unsigned n\) is int32"),
        ("void(intc, CPointer(float64), CPointer(float64))",
         "int f(int n, const double x[n], double y[n]);", "it returns none, not int$"),
        ("intc(intc, CPointer(float64), CPointer(float64))",
         "void f(int n, const double x[n], double y[n]);", "it returns int32, not void$"),
        ("float64(CPointer(CPointer(float64)))", "double f(double x);", r"is float64\*\* there"),
        ("uint8(uint8)", "signed char f(signed char x);", r"\(signed char x\) is uint8 there"),
        ("boolean(uint8)", "unsigned char f(unsigned char x);", "it returns bool, not unsigned"),
    ],
)  # fmt: skip
def test_a_numba_cfunc_of_pointers_and_integers_knows_its_type(
    types: str, prototype: str, message: str
) -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")
    bodies = {1: "lambda x: 1", 3: "lambda n, x, y: 1 if n else 0"}
    body = "lambda n, x, y: None" if types.startswith("void") else bodies[types.count(",") + 1]
    signature = eval(types, vars(numba.types))
    with pytest.raises(ValueError, match=NUMBA_OF + ".*" + message):
        jaxc.bind(prototype, numba.cfunc(signature)(eval(body)))


@pytest.mark.parametrize(
    ("types", "prototype"),
    [
        ("void(intc, CPointer(complex64), voidptr)",
         "void f(int n, const float _Complex x[n], double y[n]);"),
        ("void(uintp, CPointer(int8), CPointer(uint16))",
         "typedef unsigned short u16; void f(unsigned long n, const char x[n], u16 y[n]);"),
        ("void(uint8, CPointer(boolean), CPointer(CPointer(float64)))",
         "void f(char n, const _Bool x[n], double y[n]);"),
        ("void(longlong, CPointer(int64), CPointer(uint16))",
         "#include <jaxc/types.h>\nvoid f(long n, const long long x[n], jaxc_bf16 y[n]);"),
        ("complex128(complex128, boolean, float32)",
         "double _Complex f(double _Complex x, _Bool y, float z);"),
    ],
)  # fmt: skip
def test_types_that_agree_or_cannot_be_compared_are_let_through(
    types: str, prototype: str
) -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")
    body = (lambda n, x, y: None) if types.startswith("void") else (lambda x, y, z: x)
    jaxc.bind(prototype, numba.cfunc(eval(types, vars(numba.types)))(body))


def test_complex_numbers_that_numba_passes_as_c_does_not() -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")

    def conjugate(x: complex) -> complex:
        return x.conjugate()

    double = numba.cfunc("complex128(complex128)")(conjugate)
    f = jaxc.bind("double _Complex f(double _Complex x);", double).f
    assert f(1 + 2j) == 1 - 2j
    single = numba.cfunc("complex64(complex64)")(conjugate)
    message = (
        r"cfunc of type \(complex64,\) -> complex64 takes .* other registers than C; let it"
    )
    with pytest.raises(ValueError, match=message):
        jaxc.bind("float _Complex f(float _Complex x);", single)
    many = numba.cfunc("float64(float64, {0}, {0}, {0}, {0})".format("complex128"))(
        lambda a, b, c, d, e: e.real
    )
    prototype = "double f(double a, {0} b, {0} c, {0} d, {0} e);".format("double _Complex")
    with pytest.raises(ValueError, match="in other registers than C"):
        jaxc.bind(prototype, many)


# ctypes: types that were set.


def test_argtypes_and_restype_that_were_set_must_agree(libm: ctypes.CDLL) -> None:
    tan = libm.tan
    assert jaxc.bind("float tan(double x);", tan).tan is not None  # nothing was set
    tan.argtypes, tan.restype = [ctypes.c_double], ctypes.c_double
    assert jaxc.bind("double tan(double x);", tan).tan(0.5) == pytest.approx(np.tan(0.5))
    says = r"but the ctypes function says that its function is c_double \(c_double\): "
    with pytest.raises(ValueError, match=says + "it returns c_double, not float"):
        jaxc.bind("float tan(double x);", tan)
    with pytest.raises(ValueError, match=says + r"parameter 'x' \(float x\) is c_double there"):
        jaxc.bind("double tan(float x);", tan)
    name = ctypes.util.find_library("m")
    assert name is not None
    for handle in (libm, ctypes.CDLL(None)):  # its functions are the library's
        handle.tan.argtypes = [ctypes.c_double]
        with pytest.raises(ValueError, match=r"parameter 'x' \(float x\) is c_double there"):
            jaxc.bind("double tan(float x);", handle)
    tan.restype = None
    with pytest.raises(ValueError, match=r"is None \(c_double\): it returns None, not double"):
        jaxc.bind("double tan(double x);", tan)


@pytest.mark.parametrize(
    ("argtypes", "is_same"),
    [
        ([ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.c_void_p], True),
        ([ctypes.c_int, np.ctypeslib.ndpointer("f8"), np.ctypeslib.ndpointer()], True),
        ([ctypes.c_int32, ctypes.POINTER(ctypes.POINTER(ctypes.c_int)), object], True),
        ([ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.py_object], True),
        ([ctypes.c_int, ctypes.POINTER(ctypes.c_double), ctypes.CFUNCTYPE(None)], True),
        ([ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p], False),
        ([ctypes.c_int, ctypes.POINTER(ctypes.c_float), ctypes.c_void_p], False),
        ([ctypes.c_int, np.ctypeslib.ndpointer("f4"), ctypes.c_void_p], False),
        ([ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p], False),
        ([ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_void_p], False),
        ([ctypes.c_int, ctypes.c_void_p, ctypes.c_longdouble], False),
        ([ctypes.c_int, ctypes.c_void_p], False),
    ],
)
def test_argtypes_of_pointers(thing: Path, argtypes: list[Any], is_same: bool) -> None:
    function = ctypes.CDLL(str(thing)).refuse
    if object in argtypes:  # converts in its own way: nothing is known

        class Converter:
            @classmethod
            def from_param(cls, value: Any) -> Any:
                return value

        argtypes = [Converter if t is object else t for t in argtypes]
    function.argtypes = argtypes
    prototype = "int refuse(int n, const double x[n], double y[n]);"
    if is_same:
        jaxc.bind(prototype, function)
        return
    with pytest.raises(
        ValueError, match=r"'refuse' is declared as .* says that its func.*: (pa|it)"
    ):
        jaxc.bind(prototype, function)


def test_the_type_of_a_ctypes_prototype(libm: ctypes.CDLL) -> None:
    address = ctypes.cast(libm.cos, ctypes.c_void_p).value
    assert address is not None
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_double)(address)
    with pytest.raises(ValueError, match="it returns c_int, not double"):
        jaxc.bind(COS, function)


def test_functions_that_need_python_s_lock_are_refused() -> None:
    lock = (
        r"is called with Python's lock held \(ctypes\.PyDLL\), and JAX calls functions without"
    )
    for library in (ctypes.pythonapi, ctypes.pythonapi.Py_IsInitialized):
        with pytest.raises(ValueError, match=rf"bind: <.*> {lock}"):
            jaxc.bind("int Py_IsInitialized(void);", library)


# The process.


def test_functions_of_the_process(tmp_path: Path) -> None:
    source, library = tmp_path / "own.c", tmp_path / "libown.so"
    source.write_text(
        "double jaxc_test_cube(double x) { return x * x * x; }\n"
        "double jaxc_test_cube_jvp(double x, double d_x) { return 3 * x * x * d_x; }\n"
    )
    arguments = ["-shared", "-fPIC", str(source), "-o", str(library)]
    find_compiler().run(arguments, what="building the test's library")
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    prototypes = """
    double jaxc_test_cube(double x);
    double jaxc_test_cube_jvp(double x, double d_x);
    int abs(int x);
    struct handle;
    int use(struct handle *h);
    """
    process = ctypes.CDLL(None)
    lib = jaxc.bind(prototypes, process)
    assert list(lib) == ["jaxc_test_cube", "jaxc_test_cube_jvp", "abs"]
    cube = lib.jaxc_test_cube
    assert (cube(2.0), lib.abs(-3)) == (8, 3)
    assert jax.jvp(cube, (2.0,), (0.5,))[1] == 6
    assert jaxc.bind(prototypes, ctypes.CDLL(None)).abs == lib.abs
    assert pickle.loads(pickle.dumps(cube)) == cube
    with pytest.raises(AttributeError, match=r"'use' cannot be called .*struct handle"):
        _ = lib.use
    message = r"bind: the process \(ctypes\.CDLL\(None\)\) has no functions 'no_one', 'no_two'$"
    with pytest.raises(ValueError, match=message):
        jaxc.bind(COS + "int no_one(void); int no_two(void);", process)


# Cython.


@pytest.fixture
def capsules() -> Any:
    if importlib.util.find_spec("scipy") is None:
        pytest.skip("SciPy is not installed")
    from scipy.special import cython_special

    return cython_special.__pyx_capi__


def test_a_capsule_of_cython(capsules: Any) -> None:
    from scipy import LowLevelCallable, special

    x = np.linspace(0, 9, 10)
    for function in (capsules["j0"], LowLevelCallable(capsules["j0"])):
        j0 = jaxc.bind("double j0(double x);", function).j0
        np.testing.assert_allclose(jax.jit(j0)(x), special.j0(x), 1e-12)
        assert j0.signature == "()->()"
        # What Cython adds can be declared too.
        j0 = jaxc.bind("double j0(double x, int skip_dispatch);", function).j0
        np.testing.assert_allclose(j0(x, 0), special.j0(x), 1e-12)


def test_capsules_of_one_declaration_are_functions_of_their_own(capsules: Any) -> None:
    from scipy import special

    names = ("j0", "j1", "y0", "__pyx_fuse_1erf", "j0")
    bound = [jaxc.bind("double special(double x);", capsules[name]).special for name in names]
    assert bound[0] == bound[4] != bound[1]
    for f, name in zip(bound, names, strict=True):
        expected = getattr(special, name.rpartition("1erf")[1][1:] or name)(0.5)
        assert f(0.5) == pytest.approx(expected, rel=1e-12)


def test_optional_parameters_of_a_capsule_have_their_defaults(capsules: Any) -> None:
    from scipy import special

    f = jaxc.bind(
        "double spherical_jn(long n, double z);", capsules["__pyx_fuse_1spherical_jn"]
    ).spherical_jn
    x = np.linspace(1, 5, 7)
    np.testing.assert_allclose(f(2, x), special.spherical_jn(2, x), 1e-12)


def test_capsules_of_complex_numbers_and_pointers(capsules: Any) -> None:
    from scipy import special

    head = "#include <complex.h>\n"
    gamma = jaxc.bind(
        head + "double complex loggamma(double complex);", capsules["__pyx_fuse_0loggamma"]
    ).loggamma
    assert gamma(1 + 2j) == pytest.approx(special.loggamma(1 + 2j), rel=1e-12)
    airy = jaxc.bind(
        "#pragma jaxc scalar(a, da, b, db)\n"
        "void airy(double, double *a, double *da, double *b, double *db);",
        capsules["__pyx_fuse_1airy"],
    ).airy
    np.testing.assert_allclose(airy(1.0), special.airy(1.0), 1e-12)
    with pytest.raises(ValueError, match=r"\(double x\) is __pyx_t_double_complex there"):
        jaxc.bind("double f(double x);", capsules["__pyx_fuse_0loggamma"])


@pytest.mark.parametrize(
    ("prototype", "difference"),
    [
        ("double j0(float x);", r"parameter 'x' \(float x\) is double there"),
        ("float j0(double x);", "it returns double, not float"),
        ("double j0(void);", "it takes 1 parameter, not 0"),
        ("double j0(double x, double y);", r"'y' \(double y\) is int __pyx_skip_dispatch there"),
        ("double j0(double x, int y, int z);", "it takes 1 parameter, not 3"),
        ("#include <stdint.h>\nint32_t j0(int32_t x);", r"\(int32_t x\) is double there"),
    ],
)  # fmt: skip
def test_a_capsule_knows_its_type(capsules: Any, prototype: str, difference: str) -> None:
    message = (
        r"bind: 'j0' is declared as .*, but the capsule says that its function is double "
        rf"\(double, int __pyx_skip_dispatch\): .*{difference}$"
    )
    with pytest.raises(ValueError, match=message):
        jaxc.bind(prototype, capsules["j0"])


def capsule_of(function: Any, name: bytes | None) -> Any:
    """A capsule as Cython makes it, of any type; the caller keeps the name."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(function, ctypes.c_void_p), name, None)


def test_hidden_parameters_of_a_function_of_arrays_are_zero(tmp_path: Path) -> None:
    source, library = tmp_path / "cpdef.c", tmp_path / "libcpdef.so"
    source.write_text("""
int scale(int n, const double *x, double *y, int skip, const int *optional) {
  if (n < 0 || skip != 0 || optional != 0) return 7;
  while (n--) *y++ = 2 * *x++;
  return 0;
}
void none(double *y, int skip) { *y = skip + 1; }
""")
    arguments = ["-shared", "-fPIC", str(source), "-o", str(library)]
    find_compiler().run(arguments, what="building the test's library")
    handle = ctypes.CDLL(str(library))
    type_ = b"int (int, double const *, double *, int __pyx_skip_dispatch, struct o "
    type_ += b"*__pyx_optional_args)"
    capsule = capsule_of(handle.scale, type_)
    scale = jaxc.bind("int scale(int n, const double [n], double y[n]);", capsule).scale
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jax.vmap(scale)(x), 2 * x)
    type_ = b"void (double *, int __pyx_skip_dispatch)"
    prototype = "#pragma jaxc scalar(y)\nvoid none(double *y);"
    assert jaxc.bind(prototype, capsule_of(handle.none, type_)).none() == 1


def test_a_capsule_with_another_name_than_a_type_says_nothing(libm: ctypes.CDLL) -> None:
    for name in (b"cos", b"double (*(*)(int))(double)", b"pkg.module._C_API", None):
        assert jaxc.bind(COS, capsule_of(libm.cos, name)).cos(0.0) == 1
    with pytest.raises(ValueError, match=r"\(double x\) is long double there"):
        jaxc.bind(COS, capsule_of(libm.cos, b"long double (long double)"))


def test_a_low_level_callable_with_user_data_is_refused(libm: ctypes.CDLL) -> None:
    scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
    libm.sin.restype, libm.sin.argtypes = ctypes.c_double, (ctypes.c_double,)
    data = scipy.LowLevelCallable(libm.sin, ctypes.c_void_p(4))
    with pytest.raises(ValueError, match=r"with user data .* write a small C file over it"):
        jaxc.bind("double sin(double x);", data)
    plain = jaxc.bind("double sin(double x);", scipy.LowLevelCallable(libm.sin))
    assert plain.sin(0.5) == np.sin(0.5)


@pytest.mark.parametrize("number", [0, -1, 1 << 64, ctypes.c_void_p(0)])
def test_an_address_that_is_none(number: Any) -> None:
    with pytest.raises(ValueError, match=r"bind: the address is .*, which is no function's"):
        jaxc.bind(COS, number)


@pytest.mark.parametrize(
    ("declarations", "names"), [("", "none"), (COS + "double sin(double x);", "cos, sin")]
)
def test_an_address_is_of_one_function(
    libm: ctypes.CDLL, declarations: str, names: str
) -> None:
    with pytest.raises(ValueError, match=rf"an address is that of one .* \({names}\)"):
        jaxc.bind(declarations, libm.cos)


def test_two_addresses_of_one_name_are_two_functions(libm: ctypes.CDLL) -> None:
    first = jaxc.bind("double both(double x);", libm.sin).both
    second = jaxc.bind("double both(double x);", libm.tan).both
    assert first != second
    assert (first(0.5), second(0.5)) == (np.sin(0.5), np.tan(0.5))
    assert first.targets != second.targets
    (name,) = second.targets.values()
    assert name.startswith("jaxc:address/process#")


# Programs and processes.


def test_bound_functions_pickle(thing: Path, libm: ctypes.CDLL) -> None:
    for function in (jaxc.bind(PROTOTYPES, thing).y0, jaxc.bind(COS, "m").cos):
        assert pickle.loads(pickle.dumps(function)) == function
    at_address = jaxc.bind(COS, libm.cos).cos
    data = pickle.dumps(at_address)
    assert pickle.loads(data) == at_address
    script = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1]))"
    command = [sys.executable, "-c", script, data.hex()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (
        "'cos' was bound to an address in the process that pickled it; bind it" in done.stderr
    )


def test_programs_with_bound_functions(thing: Path, libm: ctypes.CDLL, tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers", reason="jax.export needs it to serialize")
    lib = jaxc.bind(PROTOTYPES, thing)
    at_address = jaxc.bind("double exp(double x);", libm.exp).exp
    exported = jaxc.export(jax.jit(lambda x: lib.y0(x)), 1.0)
    jaxc.bundle(tmp_path / "bundle", exported)
    (tmp_path / "program").write_bytes(exported.serialize())
    both = jaxc.export(jax.jit(lambda x: lib.y0(x) + at_address(x)), 1.0)
    (tmp_path / "both").write_bytes(both.serialize())
    with pytest.raises(ValueError, match="exp: is an address of this process, which no"):
        jaxc.bundle(tmp_path / "no", both)
    script = """
import ctypes, ctypes.util, sys
import jax, jaxc
jax.config.update("jax_enable_x64", True)
folder, thing, declarations = sys.argv[1:]
def refused(name):
    try:
        jaxc.deserialize(open(f"{folder}/{name}", "rb").read())
    except ValueError as error:
        print(error)
refused("program")
print(jaxc.load_bundle(f"{folder}/bundle", trust=True).call(1.0))
jaxc.bind(declarations, thing)
print(jaxc.deserialize(open(f"{folder}/program", "rb").read()).call(1.0))
refused("both")
jaxc.bind("double exp(double x);", ctypes.CDLL(ctypes.util.find_library("m")).exp)
print(jaxc.deserialize(open(f"{folder}/both", "rb").read()).call(1.0))
"""
    command = [sys.executable, "-c", script, str(tmp_path), str(thing), PROTOTYPES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert "bind it first: jaxc.bind(declarations, 'thing'), to the same library" in lines[0]
    assert lines[1] == lines[2] == "4.0"
    assert "calls 'exp' of library 'address/process'" in lines[3]
    assert "bind it first, as the process did that made the program" in lines[3]
    assert float(lines[4]) == pytest.approx(4 + np.e)


def test_a_built_library_finds_what_it_is_bound_to(thing: Path) -> None:
    lib = jaxc.bind(PROTOTYPES, thing)
    assert jaxc.load(lib.path).y0(0.0) == 3
    assert "jaxci_at_y0" in lib.source


def test_a_library_that_has_lost_a_function_is_an_error_and_no_crash(thing: Path) -> None:
    """A built library is loaded again, where the file that it is bound to is another one."""
    path = jaxc.bind("double count(double x);", thing).path
    thing.unlink()
    source = thing.with_suffix(".c")
    source.write_text("double other(double x) { return x; }")
    arguments = ["-shared", "-fPIC", str(source), "-o", str(thing)]
    find_compiler().run(arguments, what="building the test's library")
    script = (
        "import sys, jax, jaxc; jax.config.update('jax_enable_x64', True)\n"
        "lib = jaxc.load(sys.argv[1])\n"
        "try: lib.count(0.0).block_until_ready()\n"
        "except (ValueError, jax.errors.JaxRuntimeError) as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "count: the libraries that it is bound to lack 'count'" in done.stdout
    thing.unlink()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert f"cannot load {path.name}" in done.stderr
    assert str(thing) in done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang", "zig"])
def test_compilers(thing: Path, compiler: str) -> None:
    try:
        find_compiler(compiler)
    except RuntimeError as error:
        pytest.skip(str(error))
    assert jaxc.bind(PROTOTYPES, thing, compiler=compiler).y0(0.0) == 3
    assert jaxc.bind(COS, "m", compiler=compiler).cos(0.0) == 1
    with pytest.raises(FileNotFoundError, match="there is no library 'no_such_thing'"):
        jaxc.bind(COS, "no_such_thing", compiler=compiler)
    at_address = jaxc.bind(COS, ctypes.CDLL(None).cos, compiler=compiler)
    assert at_address.cos(0.0) == 1
