"""``#pragma jaxc grid`` and ``zero``: what they may say, and the errors with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import jaxc


def refused(text: str, name: str = "f") -> str:
    lib = jaxc.compile(text)
    with pytest.raises(AttributeError) as caught:
        getattr(lib, name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("pragma", "parameters", "expected"),
    [
        ("grid(i)", "int i, int n, float y[n]",
         "'#pragma jaxc grid' expects indices with their ranges, 'i < n', got 'i'"),
        ("grid", "int i, int n, float y[n]",
         "'#pragma jaxc grid' expects indices with their ranges, 'i < n', got ''"),
        ("grid()", "int i, int n, float y[n]",
         "'#pragma jaxc grid' expects indices with their ranges, 'i < n', got ''"),
        ("grid(i < n, )", "int i, int n, float y[n]",
         "'#pragma jaxc grid' expects indices with their ranges, 'i < n', got ''"),
        ("grid(i <= n)", "int i, int n, float y[n]",
         "'#pragma jaxc grid' expects indices with their ranges, 'i < n', got 'i <= n'"),
        ("grid(0 < n)", "int i, int n, float y[n]",
         "'#pragma jaxc grid' expects indices with their ranges, 'i < n', got '0 < n'"),
        ("grid(i < n, i < 3)", "int i, int n, float y[n]",
         "'#pragma jaxc grid' has index 'i' twice"),
        ("grid(i < n) grid(j < 3)", "int i, int j, int n, float y[n]",
         "'#pragma jaxc grid' is given twice; one grid has all indices: grid(i < n, j < m)"),
        ("grid(i < n", "int i, int n, float y[n]",
         "'#pragma jaxc grid(i < n' is not understood at '(i < n'"),
        ("grid(i < (n - 1)", "int i, int n, float y[n]",
         "'#pragma jaxc grid(i < (n - 1)' is not understood at '(i < (n - 1)'"),
        ("grid(k < n)", "int i, int n, float y[n]",
         "'#pragma jaxc grid(k < n)': index 'k' of 'f': it has no such parameter; it has i, n, y"),
        ("grid(y < n)", "int i, int n, float y[n]",
         "index 'y' of 'f': it is an array or a pointer; an index is an integer passed by value"),
        ("grid(i < n)", "int *i, int n, float y[n]",
         "index 'i' of 'f': it is an array or a pointer; an index is an integer passed by value"),
        ("grid(a < n)", "float a, int n, float y[n]",
         "index 'a' of 'f': it is of type 'float'; an index is an integer passed by value"),
        ("grid(i < n)", "int i, int n, float y[n][i]",
         "index 'i' of 'f': it stands in a bound of 'y'; sizes are the same for all points"),
        ("grid(i < n) static(i)", "int i, int n, float y[n]",
         "index 'i' of 'f': it cannot be static too"),
        ("grid(i < n, j < i)", "int i, int j, int n, float y[n]",
         "index 'j' of 'f': its range 'i' depends on index 'i'; a grid is a box"),
        ("grid(i < q)", "int i, int n, float y[n]",
         "index 'i' of 'f': range 'q': bound 'q' is not a parameter, constant or macro"),
        ("grid(i < a)", "int i, int n, float a, float y[n]",
         "index 'i' of 'f': range 'a': 'a' is no integer passed by value"),
        ("grid(i < n % 2)", "int i, int n, float y[n]",
         "range 'n % 2': bound 'n % 2' is more than + - * / and parentheses over parameters"),
        ("grid(i < n -)", "int i, int n, float y[n]",
         "index 'i' of 'f': its range 'n -' is no expression of C"),
        ("grid(i < 2 - 3)", "int i, int n, float y[n]",
         "index 'i' of 'f': range '2 - 3': bound '2 - 3' is negative"),
        ("grid(i < 2 / 0)", "int i, int n, float y[n]",
         "index 'i' of 'f': range '2 / 0': divides by zero"),
        ("grid(i < 2.5)", "int i, int n, float y[n]", "range '2.5': bound '2.5' is not an integer"),
        ("grid(i < n) zero(z)", "int i, int n, float y[n]",
         "'#pragma jaxc zero(z)': 'f' has no parameter 'z'; it has i, n, y"),
        ("grid(i < n) zero(y) inout(y)", "int i, int n, float y[n]",
         "parameter 'y' of 'f' cannot be both zero and inout"),
    ],
)  # fmt: skip
def test_a_wrong_pragma_is_an_error_with_file_and_line(
    pragma: str, parameters: str, expected: str
) -> None:
    text = f"\n#pragma jaxc {pragma}\nvoid f({parameters}) {{}}\n"
    with pytest.raises(ValueError, match=rf"^wrong\.c:2: .*{re.escape(expected)}"):
        jaxc.compile(text, name="wrong")


def test_the_message_shows_what_a_macro_became() -> None:
    with pytest.raises(ValueError, match=r"range '1 \+ q': bound 'q' is not a parameter"):
        jaxc.compile(
            "#define N 1 + q\n#pragma jaxc grid(i < N)\nvoid f(int i, float y[2]) { y[i] = 0; }"
        )


def test_a_macro_has_the_value_that_it_has_at_the_pragma(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define SIDE 3\n#define TWICE(x) (2 * (x))\n")
    (tmp_path / "grid.c").write_text(
        '#include "sizes.h"\n#define N SIDE\n'
        "#pragma jaxc grid(i < N * SIDE) \\\n  zero(y)\n"
        "void f(int i, float x, float y[9]) { y[i] = x; }\n"
        "#undef N\n#define N 2\n"
        "#pragma jaxc grid(i < N) zero(y)\nvoid g(int i, float x, float y[9]) { y[i] = x; }\n"
    )
    lib = jaxc.load(tmp_path / "grid.c")
    assert np.sum(lib.f(1.0)) == 9
    assert np.sum(lib.g(1.0)) == 2
    (tmp_path / "sizes.h").write_text("#define SIDE 2\n")
    assert np.sum(jaxc.load(tmp_path / "grid.c").f(1.0)) == 4


def test_messages_of_the_compiler_keep_their_lines(tmp_path: Path) -> None:
    (tmp_path / "broken.c").write_text(
        "#include <math.h>\n#define N 4\n#define M \\\n  N\n\n"
        "#pragma jaxc grid(i < M)\nvoid f(int i, float y[4]) {\n  y[i] = nothing;\n}\n"
    )
    with pytest.raises(RuntimeError, match=r"broken\.c:8:\d+: error: .*nothing"):
        jaxc.load(tmp_path / "broken.c")


def test_a_redeclaration_may_repeat_the_grid_and_not_change_it() -> None:
    body = "void f(int i, int n, float x, float y[n])"
    again = "#pragma jaxc grid(i < n)\n"
    lib = jaxc.compile(f"{again}{body};\n{again}{body} {{ y[i] = x; }}")
    np.testing.assert_array_equal(lib.f(2.0, n=3), [2, 2, 2])
    with pytest.raises(ValueError, match=r"two.c:3: '#pragma jaxc grid\(i < n - 1\)' differs"):
        jaxc.compile(
            f"{again}{body};\n#pragma jaxc grid(i < n - 1)\n{body} {{ y[i] = x; }}", name="two"
        )


def test_a_grid_that_returns_something_is_refused() -> None:
    text = refused("#pragma jaxc grid(i < n)\nint f(int i, int n, float y[n]) { return 0; }")
    assert (
        "it is called for each point of a grid and returns 'int'; it must return void" in text
    )
    text = refused(
        "#pragma jaxc grid(i < n)\nfloat f(int i, int n, const float y[n]) {return 0;}"
    )
    assert (
        "it is called for each point of a grid and returns 'float'; it must return void" in text
    )


def test_a_grid_that_takes_a_context_is_refused() -> None:
    text = refused(
        "#include <jaxc/jaxc.h>\n#pragma jaxc grid(i < n)\n"
        "void f(jaxc_context *c, int i, int n, float y[n]) { y[i] = 0; (void)c; }"
    )
    assert (
        "takes a jaxc_context (jaxc_context *c), which is one call's and not one point's"
        in text
    )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("x", "int n, const float x[n], float y[n]"), ("x", "float x, float y[2]"),
     ("n", "int n, float y[n]")],
)  # fmt: skip
def test_only_outputs_can_be_zero(name: str, parameters: str) -> None:
    text = refused(f"#pragma jaxc zero({name})\nvoid f({parameters}) {{ *y = 0; }}")
    assert re.search(
        rf"has parameter '{name}' \(.*\) that is no output and cannot be zero", text
    )
