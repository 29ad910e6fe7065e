"""C text to descriptions: what is accepted, and the sentence for what is not."""

from __future__ import annotations

import pytest

from jaxc.compiler import find_compiler
from jaxc.declare import DeclarationError, Unit, declare
from jaxc.description import Description, Result, Role


def describe(source: str, path: str = "f.c") -> dict[str, Description]:
    text = find_compiler().run(
        ["-E", "-x", "c", "-"], what="test", text=f'#line 1 "{path}"\n{source}'
    )
    (descriptions,) = declare([Unit(path, text, source)])
    return {description.name: description for description in descriptions}


def unit(path: str, text: str) -> Unit:
    """A unit without a preprocessor."""
    return Unit(path, f'# 1 "{path}"\n{text}\n', text)


def one(source: str) -> Description:
    (description,) = describe(source).values()
    return description


def refusal(source: str) -> str:
    text = one(source).refusal
    assert text is not None
    return text


def roles(description: Description) -> dict[str, Role]:
    return {p.name: p.role for p in description.parameters}


# ---- prototypes ----


def test_arrays_scalars_and_dimensions_get_their_roles() -> None:
    d = one("void f(int n, const float x[n], float eps, float y[n]) {}")
    assert roles(d) == {
        "n": Role.DIM,
        "x": Role.INPUT,
        "eps": Role.INPUT,
        "y": Role.OUTPUT,
    }
    assert d.signature == "(n),()->(n)"
    assert d.result is Result.NOTHING


@pytest.mark.parametrize(
    ("prototype", "signature"),
    [
        ("void f(int n, int k, const float x[n], const float w[k], float y[n - k + 1])",
         "(n),(k)->(n-k+1)"),
        ("void f(const double R[3][3], const double p[3], double q[3])", "(3,3),(3)->(3)"),
        ("void f(double a, double b, int n, double y[n])", "(),()->(n)"),
        ("double f(double x)", "()->()"),
        ("double f(double x, double y)", "(),()->()"),
        ("float f(int n, const float x[n], const float y[n])", "(n),(n)->()"),
        ("void f(const double x[2], double *s, double *c)", "(2)->(),()"),
        ("void f(int n, const float x[restrict n], float *restrict mean)", "(n)->()"),
        ("void f(int n, const float x[static n], float y[const n])", "(n)->(n)"),
        ("int f(int n, const float x[n], float y[n])", "(n)->(n)"),
        ("const char *f(int n, const float x[n], float y[n])", "(n)->(n)"),
        ("float f(int n, const float x[n], float y[n])", "(n)->(),(n)"),
        ("double f(void)", "->()"),
        ("void f(int m, int n, const int x[m][n][2], int y[n][m])", "(m,n,2)->(n,m)"),
        ("void f(int n, const float x[2*n], float y[n])", "(2*n)->(n)"),
        ("void f(int n, const float x[n], float y[n*(n+1)/2])", "(n)->(n*(n+1)/2)"),
        ("void f(int n, const float x[n], float y[0x10])", "(n)->(0x10)"),
    ],
)  # fmt: skip
def test_signature_is_read_from_the_prototype(prototype: str, signature: str) -> None:
    d = one(prototype + " {}")
    assert d.refusal is None
    assert d.signature == signature


def test_a_dimension_only_in_outputs_is_static() -> None:
    d = one("void linspace(double a, double b, int n, double y[n]) {}")
    assert [dim.is_static for dim in d.dims] == [True]
    assert d.solve == ()


def test_a_dimension_is_solved_from_a_linear_bound() -> None:
    d = one("void f(int n, const float x[2 * n + 1], float y[n]) {}")
    assert d.solve == ((0, 1, 0),)
    assert not d.dims[0].is_static


def test_the_plainest_bound_gives_the_dimension() -> None:
    d = one("void f(int n, const float a[2 * n], const float b[n], float y[n]) {}")
    assert d.solve == ((0, 2, 0),)


def test_a_division_does_not_give_its_dimension() -> None:
    d = one("void irfft(int n, const float x[n / 2 + 1], float y[n]) {}")
    assert d.dims[0].is_static


def test_dims_are_solved_one_after_another() -> None:
    d = one("void f(int m, int n, const float x[m * n], const float y[m], float z[n]) {}")
    assert d.solve == ((0, 3, 0), (1, 2, 0))


def test_macros_and_enumerators_are_constants() -> None:
    d = one(
        "#define K 4\nenum { A = 3, B, C = A << 2, D = 'x' };\n"
        "void f(const float x[K][A][B], float y[C + D]) {}"
    )
    assert [b.constant for p in d.parameters for b in p.bounds] == [4, 3, 4, 132]
    assert dict(d.checks) == {"A": 3, "B": 4, "C": 12, "D": 120}


def test_typedefs_are_followed_to_numbers_and_arrays() -> None:
    d = one(
        "#include <stdint.h>\ntypedef double real; typedef real vec3[3]; typedef int64_t big;\n"
        "typedef enum color { RED } color;\n"
        "void f(const vec3 a, vec3 b, big k, color c, uint8_t u) {}"
    )
    assert d.signature == "(3),(),(),()->(3)"
    assert [p.ctype for p in d.parameters] == [
        "double", "double", "long", "int", "unsigned char",
    ]  # fmt: skip


def test_extensions_and_odd_bodies_hide_nothing() -> None:
    found = describe(
        """
#include <stdio.h>
#include <stdlib.h>
#include <complex.h>
#include <math.h>
extern int printf_like(const char *, ...) __attribute__((format(printf, 1, 2)));
typedef struct { int a[2]; } S;
static inline int helper(int x) { return ({ int z = x; z; }); }
int table[] = { [0] = 1, [1] = '{' }; const char *text = "}{(;";
double a(double x) __attribute__((noinline));
__attribute__((hot)) double a(double x) { __asm__ volatile("" ::: "memory"); return x; }
double b(double x) { return _Generic(x, double: 1.0, default: 2.0); }
double old(x) double x; { return x; }
double c(double x) { char q = '"'; /* } */ return x + q; }
#if 0
double gone(double x) { }
#endif
__extension__ double d(double x) { __extension__ typedef int t; return (t)x; }
S structural(S s) { S t = { { 1, 2 } }; return t; }
double e(double x) { _Pragma("omp simd") for (int i = 0; i < 3; i++) x += i; return x; }
_Static_assert(sizeof(int) == 4, "int");
double f(double __restrict x[const 3]) { return x[0]; }
"""
    )
    assert {n for n, d in found.items() if d.refusal is None} >= {"a", "b", "c", "d", "e"}
    assert set(found) == {"a", "b", "c", "d", "e", "f", "old", "structural"}
    assert "old-style definition" in (found["old"].refusal or "")
    assert "struct S" in (found["structural"].refusal or "")


def test_static_functions_and_included_ones_are_not_exposed() -> None:
    found = describe("#include <stdlib.h>\nstatic double g(double x) { return x; }\n"
                     "double f(double x) { return g(x); }")  # fmt: skip
    assert set(found) == {"f"}


def test_a_declaration_beside_definitions_is_not_exposed() -> None:
    assert set(describe("double g(double x); double f(double x) { return g(x); }")) == {"f"}


def test_a_declaration_exposes_what_an_included_file_defines() -> None:
    """A template is a file that is included for each type."""
    source = (
        '#include <math.h>\n#line 1 "template.h"\n'
        "float norm_float(const float x[3]) { return x[0]; }\n"
        "static double half(double x) { return x / 2; }\n"
        '#line 5 "f.c"\n'
        "#pragma jaxc overload(norm)\nfloat norm_float(const float x[3]);\n"
        "double floor(double x);\ndouble g(double x) { return half(x); }"
    )
    found = describe(source)
    assert list(found) == ["norm_float", "g"]
    assert found["norm_float"].overload == "norm"
    assert found["norm_float"].line == 6


def test_a_file_of_declarations_exposes_them() -> None:
    d = describe("double j0(double); void f(int n, const float x[n], float y[n]);")
    assert d["j0"].signature == "()->()"
    assert d["j0"].parameters[1].name == "arg0"
    assert d["f"].signature == "(n)->(n)"


def test_a_redeclaration_with_bounds_is_used() -> None:
    d = one(
        "void f(int n, const float x[n], float y[n]);\n"
        "void f(int n, const float *x, float *y) { }"
    )
    assert d.signature == "(n)->(n)"


def test_the_comment_above_is_the_docstring() -> None:
    found = describe(
        "/* One line. */\ndouble a(double x) { return x; }\n"
        "/*\n * Two\n *   lines.\n */\n#pragma jaxc serial\ndouble b(double x) { return x; }\n"
        "// Slashes\n// too.\ndouble c(double x) { return x; }\n"
        "/* Far away. */\n\ndouble d(double x) { return x; }\n"
    )
    assert [found[k].doc for k in "abcd"] == [
        "One line.",
        "Two\n  lines.",
        "Slashes\ntoo.",
        None,
    ]


def test_the_line_is_that_of_the_user_s_file() -> None:
    d = one("#include <math.h>\n\n\ndouble f(double x)\n{ return x; }")
    assert (d.file, d.line) == ("f.c", 4)


# ---- refusals: the rest of the file loads ----


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("void f(int n, const float *x, float y[n]) {}",
         "has parameter 'x' (const float *x) without a bound: write 'const float x[n]' for an "
         "array of n, 'float x' for a value, or '#pragma jaxc scalar(x)' for a pointer to one "
         "value"),
        ("void f(double x, double *s) {}", "'#pragma jaxc scalar(s)' for a pointer to one value"),
        ("void f(const double x[3], char *s) {}", "without a bound"),
        ("void f(int n, int k, const float x[n], float *r) {}",
         "has parameter 'r' (float *r) without a bound"),
        ("void f(const float x[], float y[3]) {}", "without a bound"),
        ("void f(int n, const float x[n][n], float **y) {}", "pointer or an empty bound inside"),
        ("void f(int n, const float (*x)[n], float y[n]) {}",
         "pointer or an empty bound inside; write all its bounds: float x[n][k]"),
        ("struct s { int a; }; void f(struct s *x, float y[3]) {}",
         "has parameter 'x' (struct s *x) of type 'struct s', which no JAX array holds"),
        ("void f(void *x, float y[3]) {}", "of type 'void'"),
        ("void f(long double x, float y[3]) {}", "of type 'long double'"),
        ("void f(double (*g)(double), float y[3]) {}", "of a function pointer"),
        ("int f(const char *fmt, ...) { return 0; }", "takes a variable number of arguments"),
        ("void f(int n, const float x[n]) {}", "has no output"),
        ("double f() { return 0; }", "has no prototype: write (void) for no parameters"),
        ("unsigned long f(int n, const float x[n], float y[n]) { return 0; }",
         "returns 'unsigned long' beside output parameters"),
        ("float *f(int n, const float x[n]) { return 0; }", "returns"),
        ("inline double f(double x) { return x; }", "is 'inline' without 'static' or 'extern'"),
        ("void f(int n, const float x[n % 3], float y[n]) {}",
         "bound 'n % 3' is more than + - * / and parentheses"),
        ("void f(int n, const float x[sizeof(int)], float y[n]) {}", "bound 'sizeof(int)' is"),
        ("void f(float n, const float x[(int)n], float y[3]) {}", "is more than + - * /"),
        ("void f(const float x[3], float y[-1 + 0]) {}", "bound '-1 + 0' is negative"),
        ("void f(const float x[3], float y[3 / 0]) {}", "zero"),
        ("typedef struct { int a; } *handle; void f(handle h, float y[3]) {}", "'struct"),
        ("double kr(x) double x; { return x; }", "old-style definition without a prototype"),
    ],
)  # fmt: skip
def test_what_no_array_is_is_refused_with_the_reason(source: str, text: str) -> None:
    assert text in refusal(source)


def test_a_bound_that_is_nothing_is_refused() -> None:
    # a compiler would stop first; a declaration in text alone can still be wrong
    d = declare([unit("f.c", "void f(const float x[m], float y[3]);")])[0][0]
    assert "bound 'm' is not a parameter, constant or macro" in (d.refusal or "")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("\nvoid last(const double x[n], int n, double y[n]);",
         "f.c:2: 'last' has parameter 'x' (const double x[n]) whose bound 'n' is a parameter to "
         "its right; in C a bound can use only parameters to its left: put 'int n' before 'const "
         "double x[n]'. The order of a library's function is fixed: write a small C file over it "
         "that takes the size first and calls it"),
        ("void f(int m, const double x[m][2 * n], int n, double y[n]) {}",
         "'x' (const double x[m][2 * n]) whose bound 'n' is"),
        ("void f(const double (*x)[n], int n, double y[3]) {}", "whose bound 'n' is a parameter"),
        ("static void f(double x[static n], long n) {}", "put 'long n' before"),
        ("#pragma jaxc hide\nvoid f(double x[n], long n) {}", "put 'long n' before"),
        ("void f(int m, double n[n]) {}", "whose bound 'n' is the array itself"),
        ("void f(double [n], int n);", "'f' has 'double [n]' whose bound 'n' is"),
        # what is declared elsewhere is not at file scope before it
        ("void g(int n); struct s { int n; };\nvoid f(double x[n], int n) {}\nint n;", "f.c:2:"),
    ],
)  # fmt: skip
def test_an_array_before_its_size_is_an_error_with_file_and_line(
    source: str, text: str
) -> None:
    with pytest.raises(DeclarationError) as caught:
        describe(source)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "prototype", ["enum { a = 1, n = 3 };", "enum size { n = 1 + 2 };", "#define n 3"]
)
def test_a_bound_that_is_a_constant_is_not_the_parameter_to_its_right(prototype: str) -> None:
    d = one(f"{prototype}\nvoid f(const double x[n], int k, double y[k]) {{}}")
    assert d.signature.endswith("->(k)")
    if "enum" not in prototype:
        return
    d = one(f"{prototype}\nvoid f(const double x[n], int n, double y[n]) {{}}")
    assert d.refusal is None
    x, n, y = d.parameters
    assert (x.bounds[0].constant, n.role, y.bounds[0].dim) == (3, Role.DIM, 0)
    assert [dim.is_static for dim in d.dims] == [True]


@pytest.mark.parametrize("outer", ["extern const int n;", "static const int m = 2, n = 3;"])
def test_a_bound_that_is_a_global_variable_is_not_the_parameter_to_its_right(
    outer: str,
) -> None:
    text = refusal(f"{outer}\nvoid f(const double x[n], int n, double y[3]) {{}}")
    assert "parameter 'x' (const double x[n]): bound 'n' is not a parameter, const" in text


def test_a_member_in_a_bound_is_not_the_parameter_of_its_name() -> None:
    bound = "sizeof(((struct s *)0)->n)"
    text = refusal(
        f"struct s {{ int n; }};\nvoid f(double x[{bound}], int n, double y[3]) {{}}"
    )
    assert "is more than + - * /" in text


def test_the_bound_of_a_typedef_is_not_a_parameter_of_its_name() -> None:
    head = "enum { n = 3 }; typedef double vec[n];\n"
    d = one(head + "void f(int n, const vec x, double y[n]) {}")
    x = d.parameters[1]
    assert (x.bounds[0].constant, d.parameters[2].bounds[0].dim) == (3, 0)
    assert d.dims[0].is_static


def test_a_pointer_before_all_integers_is_refused_with_what_c_needs() -> None:
    text = refusal("double f(const double *x, int n) { return *x * n; }")
    assert (
        "a pointer to one value. A bound can use only parameters to its left, and 'n' is to "
        "its right: put it first, or, where the order is fixed, write a small C file over it "
        "that takes the size first and calls it"
    ) in text
    assert "to its right" not in refusal("double f(int n, const double *x) { return *x * n; }")


def test_more_parameters_than_the_table_holds_are_refused() -> None:
    parameters = ", ".join(f"double a{i}" for i in range(64))
    assert "more than 64 parameters" in refusal(f"double f({parameters}) {{ return 0; }}")


def test_a_redeclaration_in_another_file_must_agree() -> None:
    units = [
        unit("lib.c", "void f(int n, const double *x, double *y) { }"),
        unit("decl.h", "void f(int n, const float x[n], double y[n]);"),
    ]
    with pytest.raises(DeclarationError, match=r"decl\.h:1: 'f' is declared as .*lib\.c:1"):
        declare(units)


def test_a_redeclaration_in_another_file_serves() -> None:
    units = [
        unit("lib.c", "void f(int n, const double *x, double *y) { }"),
        unit("decl.h", "void f(int n, const double x[n], double y[n]);"),
    ]
    first, second = declare(units)
    assert first == []
    assert second[0].signature == "(n)->(n)"


def test_a_redeclaration_serves_whichever_file_comes_first() -> None:
    units = [
        unit("decl.h", "void f(const double R[3][3], double q[3]);"),
        unit("lib.c", "void f(double R[3][3], double q[3]) { }"),
    ]
    first, second = declare(units)
    assert first[0].signature == "(3,3)->(3)"
    assert second == []


def test_a_redeclaration_that_fails_is_the_one_that_is_quoted() -> None:
    units = [
        unit("lib.c", "void f(int n, const double *x, double *y) { }"),
        unit("decl.h", "\nvoid f(int n, const double x[n << 1], double y[n]);"),
    ]
    _, (description,) = declare(units)
    assert "bound 'n << 1'" in (description.refusal or "")
    assert (description.file, description.line) == ("decl.h", 2)


def test_static_is_a_matter_of_one_file() -> None:
    units = [
        unit("a.c", "__attribute__((unused)) static double h(double x) { return x; }"),
        unit("b.c", "double h(double x) { return x; }"),
    ]
    first, second = declare(units)
    assert first == []
    assert second[0].name == "h"
    forward = unit("c.c", "static double h(double); double h(double x) { return x; }")
    assert declare([forward]) == [[]]


def test_odd_declarators_are_found() -> None:
    found = describe("double (f)(double x) { return x; }\ng() { return 1; }")
    assert found["f"].signature == "()->()"
    assert "cannot read" in (found["g"].refusal or "")


def test_an_old_style_definition_may_be_declared_again_unless_types_are_promoted() -> None:
    units = [
        unit(
            "lib.c", "double f(x) double x; { return x; }\ndouble g(x) float x; { return x; }"
        ),
        unit("decl.h", "double f(double x); double g(float x);"),
    ]
    _, (f, g) = declare(units)
    assert f.signature == "()->()"
    assert "argument of type float arrives as another type" in (g.refusal or "")


# ---- pragmas ----


def test_pragmas_give_roles_and_flags() -> None:
    d = one(
        "#pragma jaxc static(mode) scratch(w)\n#pragma jaxc inout(x) serial\n#pragma jaxc effect\n"
        "#pragma jaxc scalar(r)\n#pragma jaxc overload(g)\n"
        "int f(int n, int mode, float x[n], double w[n], int k, float *r) { return 0; }"
    )
    assert roles(d) == {
        "n": Role.DIM,
        "mode": Role.STATIC,
        "x": Role.INOUT,
        "w": Role.SCRATCH,
        "k": Role.INPUT,
        "r": Role.OUTPUT,
    }
    assert d.serial
    assert d.effect
    assert d.overload == "g"
    assert d.result is Result.STATUS


def test_hidden_functions_are_not_exposed() -> None:
    assert describe("#pragma jaxc hide\ndouble f(double x) { return x; }") == {}


def test_a_pragma_from_a_macro_counts() -> None:
    d = one('#define S _Pragma("jaxc serial")\nS double f(double x) { return x; }')
    assert d.serial


def test_other_pragmas_are_not_ours() -> None:
    assert one("#pragma omp declare simd\n#pragma GCC optimize 3\n"
               "double f(double x) { return x; }").refusal is None  # fmt: skip


def test_scratch_makes_an_integer_function_a_value() -> None:
    d = one("#pragma jaxc scratch(w)\nint f(int n, const int x[n], int w[n]) { return 0; }")
    assert d.result is Result.VALUE
    assert d.signature == "(n)->()"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("#pragma jaxc statik(k)\nint f(int k) { return k; }",
         r"f\.c:1: '#pragma jaxc statik' is not known; known are static, scalar, inout"),
        ("\n\n#pragma jaxc\nint f(int k) { return k; }",
         r"f\.c:3: '#pragma jaxc' without a directive"),
        ("#pragma jaxc static(q)\nint f(int k) { return k; }",
         r"f\.c:1: '#pragma jaxc static\(q\)': 'f' has no parameter 'q'; it has k"),
        ("#pragma jaxc static()\nint f(int k) { return k; }", "expects names in parentheses"),
        ("#pragma jaxc static\nint f(int k) { return k; }", "expects names in parentheses"),
        ("#pragma jaxc static(3)\nint f(int k) { return k; }", "expects names in parentheses"),
        ("#pragma jaxc serial(k)\nint f(int k) { return k; }", "takes no argument"),
        ("#pragma jaxc overload(a, b)\nint f(int k) { return k; }", "expects one name"),
        ("#pragma jaxc ?\nint f(int k) { return k; }", "is not understood at"),
        ("#pragma jaxc serial\nint x;\nint f(int k) { return k; }",
         r"f\.c:1: '#pragma jaxc serial' does not stand before a function"),
        ("int f(int k) { return k; }\n#pragma jaxc serial\n",
         r"f\.c:2: '#pragma jaxc serial' does not stand before a function"),
        ("int f(int k) {\n#pragma jaxc serial\nreturn k; }",
         r"f\.c:2: '#pragma jaxc serial' stands inside a declaration or a body"),
        ("#pragma jaxc static(k) scratch(k)\nint f(int k) { return k; }",
         "cannot be both"),
    ],
)  # fmt: skip
def test_a_wrong_pragma_is_an_error_with_file_and_line(source: str, text: str) -> None:
    with pytest.raises(DeclarationError, match=text):
        describe(source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("#pragma jaxc inout(x)\nvoid f(int n, const float x[n], float y[n]) {}",
         "is const and cannot be inout"),
        ("#pragma jaxc scratch(x)\nvoid f(int n, float x, float y[n]) {}",
         "is passed by value and cannot be scratch"),
        ("#pragma jaxc scalar(y)\nvoid f(int n, const float x[n], float y[n]) {}",
         "has a bound and cannot be scalar"),
        ("#pragma jaxc static(x)\nvoid f(int n, const float x[n], float y[n]) {}",
         "has static parameter 'x' (const float x[n])"),
    ],
)  # fmt: skip
def test_a_pragma_that_does_not_fit_refuses_the_function(source: str, text: str) -> None:
    assert text in refusal(source)


def test_every_system_header_can_stand_before() -> None:
    headers = "assert complex ctype errno fenv float inttypes limits locale math setjmp signal"
    headers += " stdarg stdbool stddef stdint stdio stdlib string tgmath time wchar wctype"
    source = "".join(f"#include <{h}.h>\n" for h in headers.split())
    d = one(source + "void f(size_t n, const int32_t x[n], bool y[n], double complex z) {}")
    assert d.refusal is None
    assert [p.ctype for p in d.parameters] == [
        "unsigned long", "int", "_Bool", "double _Complex",
    ]  # fmt: skip
