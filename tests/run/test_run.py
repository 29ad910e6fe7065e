"""jaxc-run as a user runs it: in an empty folder, on files, with every refusal."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import jaxc

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="jaxc-run needs dlopen"),
    pytest.mark.c_only,
]


def compile_c(out: Path, sources: list[Path], *flags: str) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no cc here")
    done = subprocess.run(
        [compiler, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}",
         *flags, *map(str, sources), "-o", str(out), "-lm", "-ldl", "-lpthread"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = [*(ROOT / "src/run").glob("*.c"), *(ROOT / "src/host").glob("*.c")]
    return compile_c(
        tmp_path_factory.mktemp("program") / "jaxc-run", sources, '-DJAXC_VERSION="9.8.7"'
    )


@pytest.fixture(scope="session")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("handlers") / "handlers.so"
    return compile_c(out, [HERE / "handlers.c"], "-shared", "-fPIC")


@pytest.fixture(scope="session")
def kernels() -> Path:
    return Path(jaxc.load(HERE / "kernels.c").path)


class User:
    """An empty folder with the libraries in it, and the program."""

    def __init__(self, folder: Path, program: Path):
        self.folder = folder
        self.program = program

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), *words],
            cwd=self.folder, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def ok(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, status: int, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done.stderr

    def refuses(self, *words: str) -> str:
        text = self.fails(2, *words)
        assert text.startswith("jaxc-run: ")
        return text.removeprefix("jaxc-run: ").strip()

    def save(self, name: str, array: Any) -> str:
        np.save(self.folder / name, array)
        return name

    def load(self, name: str) -> Any:
        return np.load(self.folder / name)

    def write(self, name: str, data: bytes) -> str:
        (self.folder / name).write_bytes(data)
        return name


@pytest.fixture
def user(tmp_path: Path, program: Path, handlers: Path, kernels: Path) -> User:
    shutil.copy(handlers, tmp_path / "handlers.so")
    shutil.copy(kernels, tmp_path / "kernels.so")
    return User(tmp_path, program)


def numbers(output: str, result: int = 0) -> list[float]:
    """The values that are printed for a result."""
    line = next(x for x in output.splitlines() if x.startswith(f"result {result}"))
    return [float(word) for word in line.split("] ", 1)[1].split()]


NAMES = ["Attributes", "Between", "Copy", "Facts", "FinishTwice", "KeepError", "LeaveTask",
         "NeverFinish", "NoExecute", "OnCuda", "OnRocm", "ReadBehind", "RmsNorm", "Stages",
         "WaitForTask", "WriteArgument", "WriteBehind", "WriteNothing"]  # fmt: skip

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def rms(x: Any, eps: float) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


# ---- hand-written handlers ----


def test_a_handler_in_c_runs_on_files(user: User) -> None:
    user.save("x.npy", X)
    user.ok("handlers.so", "RmsNorm", "--arg", "x.npy", "--attr", "eps=1e-5",
            "--result", "f32[4,3]", "-o", "y.npy")  # fmt: skip
    np.testing.assert_allclose(user.load("y.npy"), rms(X, 1e-5), rtol=1e-6)


def test_options_take_their_value_behind_an_equals_sign(user: User) -> None:
    out = user.ok("handlers.so", "Copy", "--arg=f32[2]=1.5", "--result=float32[2]")
    assert out == "result 0 y: float32[2] 1.5 1.5\n"


def test_long_results_are_printed_short(user: User) -> None:
    user.save("x.npy", np.arange(100, dtype=np.int16))
    out = user.ok("handlers.so", "Copy", "--arg", "x.npy", "--result", "i16[100]")
    assert out == "result 0 y: int16[100] 0 1 2 3 4 5 6 7 ... 96 97 98 99\n"


def test_the_error_of_a_handler_is_status_1(user: User) -> None:
    text = user.fails(1, "handlers.so", "RmsNorm", "--arg", "f32[4]", "--attr", "eps=1",
                      "--result", "f32[5]")  # fmt: skip
    assert text == "INVALID_ARGUMENT: RmsNorm: x and y differ in size\n"


def test_attributes_of_every_kind_arrive(user: User) -> None:
    out = user.ok(
        "handlers.so", "Attributes", "--result", "f64[12]", "--attr", "flag=true",
        "--attr", "small=-128", "--attr", "large=u64:0x10", "--attr", "real=2.5",
        "--attr", "pair=c64:1.5-2j", "--attr", "text=f32:abc", "--attr", "weights=1,2,0.5",
        "--attr", "address=i64:4096", "--attr", "options.k=i64:3", "--attr", "mode=2",
    )  # fmt: skip
    assert numbers(out) == [1, -128, 16, 2.5, 1.5, -2, 7, 3.5, 4096, 3, 2, -5]


@pytest.mark.parametrize("text", ["c64:1.5,-2", "(1.5,-2)", "1.5,-2", "c64:1.5-2j", "(1.5-2j)"])
def test_a_complex_attribute_is_a_pair_or_a_sum(user: User, text: str) -> None:
    words = [w for a in ALL if not a.startswith("pair") for w in ("--attr", a)]
    out = user.ok("handlers.so", "Attributes", "--result", "f64[12]", *words,
                  "--attr", f"pair={text}")  # fmt: skip
    assert numbers(out)[4:6] == [1.5, -2]


ALL = ["flag=true", "small=1", "large=1", "real=1", "pair=1", "text=a", "weights=f32[]:",
       "address=0", "options.k=1", "mode=0"]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("small=300", "--attr small=300: 300 is outside the range of int8: expected -128 to 127"),
        ("small=f32:1", "--attr small=f32:1: expected int8 (as the handler's table says), got float32"),
        ("small=x", "--attr small=x: 'x' is no int8; expected a whole number"),
        ("large=-1", "--attr large=-1: -1 is outside the range of uint64: expected 0 to 18446744073709551615"),
        ("flag=2", "--attr flag=2: '2' is no bool; expected true or false"),
        ("real=1.5.", "--attr real=1.5.: '1.5.' is no float64; expected a number"),
        ("pair=1,", "--attr pair=1,: '1,' is no complex64; expected a complex number, such as 1.5-2j"),
        ("pair=1,2j", "--attr pair=1,2j: '1,2j' is no complex64; expected a complex number, such as 1.5-2j"),
        ("pair=1,2,3", "--attr pair=1,2,3: '1,2,3' is no complex64; expected a complex number, such as 1.5-2j"),
        ("pair=1,1e39", "--attr pair=1,1e39: 1,1e39 is outside the range of complex64"),
        ("pair=1+2", "--attr pair=1+2: '1+2' is no complex64; expected a complex number, such as 1.5-2j"),
        ("weights=1,,2", "--attr weights=1,,2: '' is no float32; expected a number"),
        ("weights=1,", "--attr weights=1,: expected a value after ','"),
        ("weights=f64[]:1", "--attr weights=f64[]:1: expected an array of float32 (as the handler's table says), got an array of float64"),
        ("mode=3", "--attr mode=3: expected 0 to 2"),
        ("options=3", "--attr options=3: expected nothing behind dict:, entries are NAME.KEY=VALUE"),
        ("options.q=3", "--attr: handler 'Attributes' has no attribute 'options.q'; expected of k"),
        ("real.k=3", "--attr real.k: 'real' is float64, expected a dictionary before '.'"),
        ("extra.=3", "--attr extra.=3: expected a name before and after each '.'"),
        ("other=3", "--attr: handler 'Attributes' has no attribute 'other'; expected of flag, small, large, real, pair, text, weights, address, options, mode, extra"),
        ("=3", "--attr =3: expected NAME=VALUE"),
        ("word", "--attr word: expected NAME=VALUE"),
    ],
)  # fmt: skip
def test_a_wrong_attribute_is_named(user: User, given: str, message: str) -> None:
    name = given.split("=")[0]
    words = [w for a in ALL if a.split("=")[0] != name for w in ("--attr", a)]
    assert user.refuses("handlers.so", "Attributes", "--result", "f64[12]", *words,
                        "--attr", given) == message  # fmt: skip


@pytest.mark.parametrize("missing", ALL)
def test_a_missing_attribute_is_named(user: User, missing: str) -> None:
    name = missing.split("=")[0]
    words = [w for a in ALL if a != missing for w in ("--attr", a)]
    text = user.refuses("handlers.so", "Attributes", "--result", "f64[12]", *words)
    assert f"attribute '{name.split('.')[0]}' (" in text
    assert ") is missing; expected --attr " + name.split(".")[0] in text


def test_an_attribute_that_is_given_twice_is_refused(user: User) -> None:
    text = user.refuses("handlers.so", "RmsNorm", "--attr", "eps=1", "--attr", "eps=2")
    assert text == "--attr eps=2: the name was given before"


def test_a_name_cannot_be_a_value_and_a_dictionary(user: User) -> None:
    text = user.refuses("handlers.so", "Copy", "--attr", "a=i64:1", "--attr", "a.b=i64:2")
    assert text == "--attr a.b=i64:2: expected a dictionary, for 'a' cannot be one and a value"


def test_an_attribute_that_nothing_types_needs_a_type(user: User) -> None:
    text = user.refuses("handlers.so", "Copy", "--attr", "a=3")
    assert text == (
        "--attr a=3: nothing says which type it has; expected TYPE:VALUE, such as f32:1e-5, "
        "i64:3, str:text or f32[]:1,2"
    )


def test_nested_dictionaries_of_free_names_are_taken(user: User) -> None:
    user.ok("handlers.so", "Copy", "--arg", "u8[1]", "--result", "u8[1]",
            "--attr", "a.b.c=c128:1+2j", "--attr", "z=dict:", "--attr", "a.d=i8[]:1,-2",
            "--attr", "a.b.e=str:x", "--attr", "z.y=bool:0")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--result", "f32[3]"], "--arg: handler 'RmsNorm' has 1 argument: 'x' (float32, at least 1 axis); got 0"),
        (["--arg", "f32[3]"], "--result: handler 'RmsNorm' has 1 result: 'y' (float32, at least 1 axis); got 0"),
        (["--arg", "f64[3]", "--result", "f32[3]"], "argument 0 is 'x', expected float32, at least 1 axis, got float64[3] from --arg f64[3]"),
        (["--arg", "f32", "--result", "f32[3]"], "argument 0 is 'x', expected float32, at least 1 axis, got float32[] from --arg f32"),
        (["--arg", "f32[3]", "--result", "f16[3]"], "result 0 is 'y', expected float32, at least 1 axis, got float16[3] from --result"),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_the_table_is_refused(
    user: User, words: list[str], message: str
) -> None:
    assert user.refuses("handlers.so", "RmsNorm", "--attr", "eps=1", *words) == message


@pytest.mark.parametrize("count", [0, 3])
def test_a_number_of_operands_that_may_vary_is_a_range(user: User, count: int) -> None:
    words = ["--arg=f32[1]"] * count
    assert user.refuses("handlers.so", "Between", *words) == (
        "--arg: handler 'Between' has 1 to 2 arguments: 'x' (float32, 1 axis), 'scale' "
        f"(float32, 0 axes, may be absent); got {count}"
    )


def test_a_number_of_operands_in_the_range_is_taken(user: User) -> None:
    user.ok("handlers.so", "Between", "--arg=f32[1]")
    user.ok("handlers.so", "Between", "--arg=f32[1]", "--arg=f32")


@pytest.mark.parametrize(("name", "platform"), [("OnCuda", "cuda"), ("OnRocm", "rocm")])
@pytest.mark.parametrize("given", [[], ["--platform", "cpu"], ["--check"]])
def test_a_handler_for_gpus_is_not_called_by_chance(
    user: User, name: str, platform: str, given: list[str]
) -> None:
    words = ["handlers.so", name, "--arg", "u8[9]=5", "--result", "u8[9]"]
    assert user.refuses(*words, *given) == (
        f"'{name}' is for {platform}, and the host has no device memory; --platform gpu calls "
        "it with memory of this machine all the same"
    )


def test_a_handler_for_gpus_is_called_when_it_is_meant(user: User) -> None:
    words = ["handlers.so", "OnCuda", "--arg", "u8[2]=5", "--result", "u8[2]"]
    assert numbers(user.ok(*words, "--platform", "gpu")) == [5, 5]


def test_a_handler_without_execute_is_refused(user: User) -> None:
    assert user.refuses("handlers.so", "NoExecute") == (
        "handler 'NoExecute' cannot be called: its table has no execute stage"
    )


# ---- calls that are not compared with the description ----


def test_without_a_check_the_handler_itself_refuses(user: User) -> None:
    words = ["handlers.so", "RmsNorm", "--arg", "f64[3]", "--result", "f32[3]"]
    assert user.refuses(*words, "--attr", "eps=1").startswith("argument 0 is 'x'")
    text = user.fails(1, *words, "--attr", "eps=1", "--no-check")
    assert text.startswith("INVALID_ARGUMENT: RmsNorm: argument 0")
    assert "float64" in text


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ([], "eps"),
        (["eps=f64:1"], "float64"),
        (["eps=str:text"], "eps"),
        (["eps=1", "other=i64:3"], "other"),
    ],
)
def test_without_a_check_attributes_are_sent_as_they_are(
    user: User, attrs: list[str], message: str
) -> None:
    words = [w for a in attrs for w in ("--attr", a)]
    text = user.fails(1, "handlers.so", "RmsNorm", "--arg", "f32[3]", "--result", "f32[3]",
                      "--no-check", *words)  # fmt: skip
    assert text.startswith("INVALID_ARGUMENT: RmsNorm: ")
    assert message in text.removeprefix("INVALID_ARGUMENT: RmsNorm: ")


def test_without_a_check_a_text_may_be_sent_as_a_number(user: User) -> None:
    words = [w for a in ALL if a != "text=a" for w in ("--attr", a)]
    user.ok("handlers.so", "Attributes", "--result", "f64[12]", *words, "--attr", "text=f32:1")
    text = user.fails(1, "handlers.so", "Attributes", "--result", "f64[12]", *words,
                      "--attr", "text=f32:1", "--no-check")  # fmt: skip
    assert "text" in text


def test_without_a_check_the_number_of_an_enum_is_the_handlers_to_refuse(user: User) -> None:
    words = [w for a in ALL if a != "mode=0" for w in ("--attr", a)]
    text = user.fails(1, "handlers.so", "Attributes", "--result", "f64[12]", *words,
                      "--attr", "mode=3", "--no-check")  # fmt: skip
    assert "mode" in text


def test_without_a_check_a_value_must_still_fit_its_type(user: User) -> None:
    assert user.refuses("handlers.so", "Attributes", "--no-check", "--attr", "small=300") == (
        "--attr small=300: 300 is outside the range of int8: expected -128 to 127"
    )
    assert user.refuses("handlers.so", "RmsNorm", "--no-check", "--attr", "other=1") == (
        "--attr other=1: nothing says which type it has; expected TYPE:VALUE, such as "
        "f32:1e-5, i64:3, str:text or f32[]:1,2"
    )


def test_without_a_check_a_function_refuses_by_itself(user: User) -> None:
    words = ["kernels.so", "rms_norm", "--arg", "f64[3]", "--arg", "f32", "--no-check"]
    text = user.fails(1, *words, "--result", "f32[3]")
    assert text.startswith("INVALID_ARGUMENT: rms_norm: ")
    assert "float64" in text
    good = ["kernels.so", "rms_norm", "--arg", "f32[3]=2", "--arg", "f32", "--no-check"]
    assert numbers(user.ok(*good, "--result", "f32[3]")) == [1, 1, 1]
    assert user.refuses(*good, "-o", "y.npy") == (
        "-o y.npy: expected at most 0 of them, one for each result, got 1; --result says what "
        "a result is"
    )


def test_stages_are_found_in_the_table(user: User) -> None:
    words = ["handlers.so", "Stages", "--attr", "k=3", "--result", "i64[1]"]
    assert numbers(user.ok(*words)) == [30]
    assert numbers(user.ok(*words, "--platform", "gpu")) == [3030]


def test_stages_of_a_handler_with_a_table_cannot_be_given(user: User) -> None:
    text = user.refuses("handlers.so", "Stages", "--prepare", "Bare")
    assert text == (
        "--prepare: 'Stages' says itself which stages it has; expected no such option"
    )


# ---- symbols without a description ----


def test_stages_of_a_bare_symbol_are_options(user: User) -> None:
    assert numbers(user.ok("handlers.so", "Bare", "--result", "i64[1]")) == [0]
    words = ["handlers.so", "Bare", "--result", "i64[1]", "--instantiate", "BareBegin"]
    assert numbers(user.ok(*words)) == [7]


@pytest.mark.parametrize("option", ["--instantiate", "--prepare", "--initialize"])
def test_a_stage_that_is_not_there_is_named(user: User, option: str) -> None:
    text = user.refuses("handlers.so", "Bare", option, "Nothing")
    assert text == f"{option}: library 'handlers.so' exports no symbol 'Nothing'"


@pytest.mark.parametrize("symbol", ["no_handler", "just_data", "printf"])
def test_what_is_no_handler_is_refused_and_does_no_harm(user: User, symbol: str) -> None:
    text = user.refuses("handlers.so", symbol)
    assert text.startswith(f"'{symbol}' cannot be called as an XLA FFI handler (execute): ")
    assert "no handler" in text


def test_a_stage_that_is_no_handler_is_refused(user: User) -> None:
    text = user.refuses("handlers.so", "Bare", "--instantiate", "no_handler")
    assert text.startswith("'Bare' cannot be called as an XLA FFI handler (instantiate): ")


def test_an_unknown_name_is_answered_by_those_that_there_are(user: User) -> None:
    assert user.refuses("kernels.so", "rms").startswith(
        "library 'kernels.so' has no handler 'rms'; it has "
    )
    text = user.refuses("handlers.so", "rms")
    assert text.startswith("library 'handlers.so' has no handler 'rms'")
    if sys.platform == "linux":
        assert "RmsNorm" in text


CXX = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
static ffi::Error Scale(ffi::Buffer<ffi::F32> x, float a, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i) {
    y->typed_data()[i] = a * x.typed_data()[i];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ScaleCc, Scale,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Attr<float>("a")
        .Ret<ffi::Buffer<ffi::F32>>());
"""


def test_a_handler_in_cxx_runs(user: User) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here")
    (user.folder / "scale.cc").write_text(CXX)
    subprocess.run(
        [compiler, "-std=c++17", "-w", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}",
         "scale.cc", "-o", "scale.so"],
        cwd=user.folder, check=True,
    )  # fmt: skip
    words = ["scale.so", "ScaleCc", "--attr", "a=f32:3", "--result", "f32[2]"]
    assert numbers(user.ok(*words, "--arg", "f32[2]=2")) == [6, 6]
    assert "Wrong buffer dtype: expected F32 but got F64" in user.fails(
        1, *words, "--arg", "f64[2]"
    )
    assert "handler ScaleCc, without a description" in user.ok("scale.so", "ScaleCc", "--list")


# ---- functions that jaxc built ----


def test_a_function_needs_no_result_and_broadcasts(user: User) -> None:
    user.save("x.npy", X)
    user.save("eps.npy", np.float32([[1e-5], [3]]))
    user.ok("kernels.so", "rms_norm", "--arg", "x.npy", "--arg", "eps.npy", "-o", "y.npy")
    expected = np.stack([rms(X, 1e-5), rms(X, 3)])
    np.testing.assert_allclose(user.load("y.npy"), expected, rtol=1e-6)


def test_computed_sizes_are_solved(user: User) -> None:
    user.save("x.npy", np.arange(5.0))
    out = user.ok("kernels.so", "smooth", "--arg", "x.npy", "--arg", "f64[2]=0.5")
    assert numbers(out) == [0.5, 1.5, 2.5, 3.5]
    assert numbers(user.ok("kernels.so", "pairs", "--arg", "f32[6]=2")) == [4, 4, 4]


def test_a_static_dimension_is_an_attribute(user: User) -> None:
    out = user.ok("kernels.so", "ramp", "--arg", "f32=2", "--attr", "n=3")
    assert numbers(out) == [2, 3, 4]


def test_a_value_function_has_one_result(user: User) -> None:
    assert numbers(user.ok("kernels.so", "twice", "--arg", "f64[2]=4")) == [8, 8]


def test_static_values_take_their_types_from_c(user: User) -> None:
    out = user.ok(
        "kernels.so", "statics", "--arg", "f32[1]=1", "--attr", "k=-2", "--attr", "scale=0.5",
        "--attr", "bits=0xf000000000000000", "--attr", "exact=1", "--attr", "name=12:30",
    )  # fmt: skip
    assert numbers(out) == [-2 + 0.5 + 1500 + 1000 + 50000]


def test_an_inout_is_copied_or_aliased(user: User) -> None:
    words = ["kernels.so", "bump", "--arg", "f32[3]=1"]
    assert numbers(user.ok(*words)) == [2, 2, 2]
    assert numbers(user.ok(*words, "--alias", "0:0", "--repeat", "3")) == [2, 2, 2]


def test_a_grid_is_called_for_all_its_points(user: User) -> None:
    user.save("x.npy", np.array([[1, 4, 9], [0, 5, 7]], np.float32))
    user.ok("kernels.so", "steps", "--arg", "x.npy", "-o", "y.npy")
    expected = [[[-3, 3], [-5, 5], [0, 0]], [[-5, 5], [-2, 2], [0, 0]]]
    np.testing.assert_array_equal(user.load("y.npy"), expected)
    assert user.ok("kernels.so", "steps", "--arg", "f32[0]") == "result 0 y: float32[0,2]\n"


def test_a_function_may_take_a_context(user: User) -> None:
    assert numbers(user.ok("kernels.so", "in_context", "--arg", "f32[2]=1")) == [2, 2]


def test_the_token_of_an_effect_is_not_the_users(user: User) -> None:
    assert numbers(user.ok("kernels.so", "noted", "--arg", "f32[2]=1")) == [-1, -1]


def test_the_status_of_a_function_is_its_error(user: User) -> None:
    text = user.fails(1, "kernels.so", "checked", "--arg", "f32[2]=-1")
    assert text == "UNKNOWN: checked: returned status 7; 0 is success\n"


def test_a_function_that_cannot_be_called_says_why(user: User) -> None:
    text = user.refuses("kernels.so", "refused", "--arg", "f32[2]")
    assert text.startswith("function 'refused' cannot be called: it ")
    assert "'p'" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rms_norm --arg f32[3]", "--arg: 'rms_norm' takes 2 arguments: 'x' (const float x[n]), 'eps' (float eps); got 1"),
        ("rms_norm --arg f64[3] --arg f32", "argument 0 is 'x' (const float x[n]), expected float32[..., n], got float64[3] from --arg f64[3]"),
        ("rms_norm --arg f32 --arg f32", "argument 0 is 'x' (const float x[n]), expected float32[..., n], got float32[] from --arg f32"),
        ("rms_norm --arg f32[2,3] --arg f32[4]", "argument 1 is 'eps' (float eps), expected 2 or 1 on leading axis -1 as in the arguments before it, got 4 of float32[4] from --arg f32[4]"),
        ("rms_norm --arg f32[2,3] --arg f32 --result f32[3]", "--result: result 0 is 'y' (float y[n]), expected float32[2,3], got float32[3]"),
        ("rms_norm --arg f32[3] --arg f32 --result f32[3] --result f32", "--result: 'rms_norm' has 1 result (void rms_norm(int n, const float x[n], float eps, float y[n])); got 2"),
        ("rms_norm --arg f32[3] --arg f32 --attr q=1", "--attr: function 'rms_norm' has no attribute 'q'; expected of none"),
        ("rms_norm --arg f32[3] --arg f32 --platform gpu", "--platform: function 'rms_norm' has handlers for cpu, expected one for gpu"),
        ("pairs --arg f32[5]", "argument 0 is 'w' (const float w[2 * n]), expected 2 * n elements on core axis 0, and no n gives the 5 of float32[5] from --arg f32[5]"),
        ("smooth --arg f64[2] --arg f64[4]", "'y' (double y[n - k + 1]) has no size n - k + 1 for these dimensions"),
        ("ramp --arg f32", "attribute 'n' (int n) is missing; expected --attr n=VALUE"),
        ("ramp --arg f32 --attr n=-1", "dimension n (int n) is -1, expected 0 to 2147483647"),
        ("tiny --arg f32[128]", "dimension n (int8_t n) is 128, expected 0 to 127"),
        ("statics --arg f32[1] --attr k=2147483648", "--attr k=2147483648: 2147483648 is outside the range of int32: expected -2147483648 to 2147483647"),
        ("statics --arg f32[1] --attr k=i64:1", "--attr k=i64:1: expected int32 (int k), got int64"),
        ("statics --arg f32[1] --attr q=1", "--attr: function 'statics' has no attribute 'q'; expected of k, scale, bits, exact, name"),
        ("statics --arg f32[1] --attr k=1", "attribute 'scale' (double scale) is missing; expected --attr scale=VALUE"),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_the_prototype_is_refused(
    user: User, words: str, message: str
) -> None:
    assert user.refuses("kernels.so", *words.split()) == message


def test_core_sizes_that_differ_are_named(user: User) -> None:
    source = "void dot(int n, const float x[n], const float y[n], float z[1]) { z[0] = n; }"
    shutil.copy(jaxc.compile(source).path, user.folder / "dot.so")
    assert user.refuses("dot.so", "dot", "--arg", "f32[3]", "--arg", "f32[2,4]") == (
        "argument 1 is 'y' (const float y[n]), expected n = 3 elements on core axis 0, got "
        "float32[2,4] from --arg f32[2,4]"
    )


def test_check_shows_the_call_and_does_not_run_it(user: User) -> None:
    words = ["kernels.so", "checked", "--arg", "f32[2]=-1", "--check"]
    assert user.ok(*words) == (
        "checked: int checked(int n, const float x[n], float y[n])\n"
        "  argument 0 x: float32[2]\n  result 0 y: float32[2]\n"
    )


# ---- lists ----


def test_the_list_shows_functions_with_their_operands(user: User) -> None:
    out = user.ok("kernels.so", "--list")
    assert f"kernels.so: library 'kernels', written by jaxc {jaxc.__version__}\n" in out
    assert """
function statics (cpu)
  void statics(int n, int k, double scale, uint64_t bits, _Bool exact, const char *name, const float x[n], double y[n])
  argument 0: x, float32[..., n]
  result 0: y, float64[..., n]
  attribute: k, int32
  attribute: scale, float64
  attribute: bits, uint64
  attribute: exact, bool
  attribute: name, string
  dimension: n, from the shapes, 0 to 2147483647
""" in out  # fmt: skip
    assert "  attribute: n, int64, a dimension, 0 to 2147483647\n" in out
    assert "\nfunction refused (cannot be called)\n" in out
    assert "  argument 0: x, float32[..., n], read and written\n" in out
    assert "  has side effects\n" in out
    assert (
        """
  result 0: y, float32[..., n, 2], cleared first
  dimension: n, from the shapes, 0 to 2147483647
  called for each point of a grid: i < n - 1, k < 2
"""
        in out
    )


@pytest.mark.skipif(sys.platform != "linux", reason="symbols are listed on ELF systems")
def test_the_list_shows_handlers_with_their_fields(user: User) -> None:
    out = user.ok("--list", "handlers.so")
    assert (
        """
handler Stages (cpu)
  result 0: y, int64, 1 axis
  attribute: k, int64
  stages: instantiate, prepare, execute
  state: jaxc_run_tests.number
  traits: can be captured in a command buffer
  API: 0.2 or newer
"""
        in out
    )
    assert "  attribute: options.k, int64\n" in out
    assert "  attribute: mode, int64, 0 to 2\n" in out
    assert "  attribute: extra, int32, may be absent\n" in out
    assert out.endswith(
        "\nfunctions without a description, handlers or not: Bare, BareBegin, no_handler\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="symbols are listed on ELF systems")
@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_names_are_read_from_either_hash_table(user: User, tmp_path: Path, style: str) -> None:
    folder = tmp_path / style
    folder.mkdir()
    flags = ["-shared", "-fPIC", f"-Wl,--hash-style={style}"]
    compile_c(folder / "styled.so", [HERE / "handlers.c"], *flags)
    out = user.ok(f"{style}/styled.so", "--list")
    names = re.findall(r"^handler (\w+)", out, re.MULTILINE)
    assert names == NAMES


@pytest.mark.skipif(sys.platform != "linux", reason="symbols are listed on ELF systems")
def test_a_library_that_exports_nothing_has_no_handlers(user: User) -> None:
    (user.folder / "none.c").write_text(
        "static int x; void *_hidden_from_lists(void) {return &x;}"
    )
    compile_c(user.folder / "none.so", [user.folder / "none.c"], "-shared", "-fPIC",
              "-fvisibility=hidden")  # fmt: skip
    assert user.ok("none.so", "--list") == "none.so: not written by jaxc\n\nno handlers\n"


@pytest.mark.skipif(sys.platform != "linux", reason="symbols are listed on ELF systems")
def test_the_list_begins_with_the_number_of_handlers(user: User) -> None:
    assert user.ok("handlers.so", "--list").startswith(f"handlers.so: {len(NAMES)} handlers\n")


def test_the_list_shows_a_handler_that_has_no_execute(user: User) -> None:
    lines = """
handler NoExecute (cpu)
  attribute: all, all attributes, of any name
  stages: instantiate
  cannot be called: it has no execute stage
"""
    assert user.ok("handlers.so", "NoExecute", "--list") == lines
    if sys.platform == "linux":
        assert lines in user.ok("handlers.so", "--list")


BAD_HANDLERS = """
#include <jaxc/jaxc.h>
typedef struct { int64_t k; } one_call;
static const jaxc_field one[] = {JAXC_ATTRIBUTE(one_call, k)};
static jaxc_status fine(jaxc_context *c, const void *d) { (void)c, (void)d; return JAXC_OK; }
JAXC_HANDLER(Fine, one_call, one, .execute = fine);
JAXC_EXPORT const jaxc_handler jaxc_handler_Damaged = {
    .struct_size = sizeof(jaxc_handler), .abi_version = JAXC_HANDLER_ABI, .field_count = 3};
JAXC_EXPORT const jaxc_handler jaxc_handler_Old = {
    .struct_size = sizeof(jaxc_handler), .abi_version = 99};
"""


@pytest.mark.skipif(sys.platform != "linux", reason="symbols are listed on ELF systems")
def test_a_bad_handler_does_not_hide_the_others(user: User) -> None:
    (user.folder / "bad.c").write_text(BAD_HANDLERS)
    compile_c(user.folder / "bad.so", [user.folder / "bad.c"], "-shared", "-fPIC",
              "-Wno-missing-field-initializers")  # fmt: skip
    assert (
        user.ok("bad.so", "--list")
        == """bad.so: 3 handlers

handler Damaged (cannot be called)
  bad.so: jaxc_handler_Damaged is damaged

handler Fine (cpu)
  attribute: k, int64
  stages: execute

handler Old (cannot be called)
  bad.so: jaxc_handler_Old has version 99, expected version 1
"""
    )
    user.ok("bad.so", "Fine", "--attr", "k=1")
    assert user.refuses("bad.so", "Damaged") == "bad.so: jaxc_handler_Damaged is damaged"
    assert (
        user.refuses("bad.so", "Damaged", "--list") == "bad.so: jaxc_handler_Damaged is damaged"
    )
    assert user.refuses("bad.so", "Old") == (
        "bad.so: jaxc_handler_Old has version 99, expected version 1"
    )


def test_the_list_of_one_name_shows_it_alone(user: User) -> None:
    assert (
        user.ok("handlers.so", "RmsNorm", "--list")
        == """
handler RmsNorm (cpu)
  argument 0: x, float32, at least 1 axis
  result 0: y, float32, at least 1 axis
  attribute: eps, float32
  stages: execute
"""
    )
    assert user.ok("handlers.so", "Bare", "--list") == (
        "\nhandler Bare, without a description\n  API: 0.1\n"
        "  traits: can be captured in a command buffer\n"
    )


# ---- the host ----


def facts(user: User, *words: str) -> list[float]:
    out = user.ok("handlers.so", "Facts", "--arg", "f32[3]=1e-40", "--result", "f32[3]",
                  "--result", "i64[6]", *words)  # fmt: skip
    return numbers(out, 1)


@pytest.mark.parametrize(
    ("words", "fact", "value"),
    [
        ("--threads 3", 0, 3),
        ("--threads inline", 0, 1),
        ("--threads late", 0, 1),
        ("--threads none", 0, -1),
        ("--threads 0", 0, 0),
        ("--misalign 4", 1, 4),
        ("--misalign 0", 1, 0),
        ("--exact", 1, 0),
        ("--exact --misalign 4", 1, 4),
        ("--api 1", 2, 1),
        ("--api 4", 2, 4),
        ("--check-nothing", 2, 5),
        ("--alias 0:0", 3, 1),
        ("--repeat 2", 3, 0),
        ("--flush-denormals", 4, 1),
        ("--repeat 1", 4, 0),
        ("--unknown-extensions 2", 5, 1),
        ("--unknown-extensions 0", 5, 0),
    ],
)
def test_the_host_is_as_the_options_say(user: User, words: str, fact: int, value: int) -> None:
    given = [] if words == "--check-nothing" else words.split()
    assert facts(user, *given)[fact] == value


def test_the_pool_has_a_thread_for_each_processor(user: User) -> None:
    assert facts(user)[0] == min(os.cpu_count() or 1, 1024)


def test_a_short_frame_is_the_handlers_error(user: User) -> None:
    text = user.fails(1, "handlers.so", "Copy", "--arg", "u8[1]", "--result", "u8[1]",
                      "--short-frame", "8")  # fmt: skip
    assert "INVALID_ARGUMENT: Copy: the call frame has 160 bytes" in text


def test_each_allocation_can_fail_until_none_does(user: User) -> None:
    words = ["handlers.so", "Copy", "--arg", "u8[1]", "--result", "u8[1]"]
    for k in range(1, 200):
        done = user.run(*words, "--fail-allocation", str(k))
        if done.returncode == 0:
            break
        assert done.returncode == 1
        assert done.stderr.startswith("RESOURCE_EXHAUSTED: ")
    assert k > 3
    assert done.stderr == (
        f"jaxc-run: --fail-allocation {k}: no allocation failed, there were {k - 1}\n"
    )


def test_each_request_of_a_handler_can_fail_until_none_does(user: User) -> None:
    words = ["handlers.so", "Stages", "--attr", "k=1", "--result", "i64[1]"]
    for k in range(1, 20):
        done = user.run(*words, "--fail-request", str(k))
        if done.returncode == 0:
            break
        assert done.returncode == 1
        assert done.stderr.startswith("RESOURCE_EXHAUSTED: ")
    assert k == 4  # the type by each of two stages, and the state
    assert done.stderr == "jaxc-run: --fail-request 4: no request failed, there were 3\n"


def test_an_error_can_fail(user: User) -> None:
    words = ["handlers.so", "RmsNorm", "--arg", "f32[4]", "--attr", "eps=1"]
    text = user.fails(1, *words, "--result", "f32[5]", "--fail-error", "1")
    assert text == "RESOURCE_EXHAUSTED: \n"
    done = user.run(*words, "--result", "f32[4]", "--fail-error", "2")
    assert done.returncode == 0
    assert done.stderr == "jaxc-run: --fail-error 2: no error failed, there were 0\n"


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        ("WriteArgument", "argument 0 ('x') was written: byte 0 of 3 is 0x11, and was 0x00"),
        ("WriteBehind", "result 0 ('y') was written right behind its end"),
        ("KeepError", "left behind: 1 error neither returned nor destroyed"),
        ("FinishTwice", "1 future finished twice"),
    ],
)
def test_damage_is_status_3(user: User, handler: str, message: str) -> None:
    text = user.fails(3, "handlers.so", handler, "--arg", "u8[3]", "--result", "u8[3]")
    assert text == f"jaxc-run: {message}\n"


def test_a_result_that_is_not_written_is_damage(user: User) -> None:
    words = ["handlers.so", "WriteNothing", "--arg", "f32[2]", "--result"]
    assert user.fails(3, *words, "f32[2]") == "jaxc-run: result 0 ('y') was not written\n"
    assert user.fails(3, *words, "f32[2]", "--exact") == (
        "jaxc-run: result 0 ('y') was not written\n"
    )


def test_damage_names_what_the_user_gave_and_not_the_token(user: User) -> None:
    source = (
        "#pragma jaxc effect\nvoid late(int n, const float x[n], float y[n]) { y[n] = x[0]; }"
    )
    shutil.copy(jaxc.compile(source).path, user.folder / "late.so")
    text = user.fails(3, "late.so", "late", "--arg", "f32[4]")
    assert text == "jaxc-run: result 0 ('y') was written right behind its end\n"


def test_damage_of_a_handler_without_a_description_has_no_name(user: User) -> None:
    (user.folder / "bare.c").write_text(
        "#include <jaxc/jaxc.h>\n"
        "JAXC_EXPORT jaxc_abi_error *Lazy(jaxc_abi_call_frame *frame);\n"
        "jaxc_abi_error *Lazy(jaxc_abi_call_frame *frame) {\n"
        "  (void)jaxc_call_answer_metadata(frame, 0);\n"
        "  return NULL;\n}\n"
    )
    compile_c(user.folder / "bare.so", [user.folder / "bare.c"], "-shared", "-fPIC")
    text = user.fails(3, "bare.so", "Lazy", "--result", "f64[1]")
    assert text == "jaxc-run: result 0 was not written\n"


# ---- reads beyond an array ----


def test_valgrind_sees_a_read_beyond_an_exact_array(user: User) -> None:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("no valgrind here")
    words = ["handlers.so", "ReadBehind", "--arg", "f32[3]", "--result", "f32[1]"]
    command = [valgrind, "--error-exitcode=9", str(user.program), *words]
    hidden = subprocess.run(
        command, cwd=user.folder, capture_output=True, text=True, check=False
    )
    assert hidden.returncode == 0, hidden.stderr
    seen = subprocess.run(
        [*command, "--exact"], cwd=user.folder, capture_output=True, text=True, check=False
    )
    assert seen.returncode == 9
    assert "Invalid read of size 1" in seen.stderr
    assert "is 0 bytes after a block of size 12 alloc'd" in seen.stderr


def test_the_address_sanitizer_sees_a_read_beyond_an_exact_array(user: User) -> None:
    sources = [*(ROOT / "src/run").glob("*.c"), *(ROOT / "src/host").glob("*.c")]
    try:
        compile_c(user.folder / "asan-run", sources, "-fsanitize=address")
        compile_c(user.folder / "asan.so", [HERE / "handlers.c"], "-shared", "-fPIC",
                  "-fsanitize=address")  # fmt: skip
    except AssertionError as error:
        if "asan" not in str(error):
            raise
        pytest.skip("the address sanitizer is not here")
    user.program = user.folder / "asan-run"
    words = ["asan.so", "ReadBehind", "--arg", "f32[3]", "--result", "f32[1]"]
    user.ok(*words)
    done = user.run(*words, "--exact")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr


# ---- handlers that do not end ----


def test_a_handler_that_waits_for_late_tasks_is_stopped(user: User) -> None:
    user.ok("handlers.so", "WaitForTask", "--threads", "1", "--timeout", "20")
    text = user.fails(1, "handlers.so", "WaitForTask", "--threads", "late", "--timeout", "1")
    assert text == "DEADLINE_EXCEEDED: the handler has not returned in 1 s\n"


@pytest.mark.parametrize("threads", ["1", "late"])
def test_tasks_that_do_not_end_are_stopped(user: User, threads: str) -> None:
    text = user.fails(1, "handlers.so", "LeaveTask", "--threads", threads, "--timeout", "1")
    assert text == "DEADLINE_EXCEEDED: the handler's tasks have not ended in 1 s\n"


def test_a_future_that_is_never_finished_is_given_up(user: User) -> None:
    text = user.fails(3, "handlers.so", "NeverFinish", "--arg", "u8[1]", "--result", "u8[1]",
                      "--timeout", "1")  # fmt: skip
    assert text == (
        "DEADLINE_EXCEEDED: the handler's future was not finished within 1 second\n"
        "jaxc-run: left behind: 1 future not finished\n"
    )


def test_a_timeout_changes_nothing_for_a_handler_that_ends(user: User) -> None:
    words = ["handlers.so", "Stages", "--attr", "k=3", "--result", "i64[1]", "--timeout", "9"]
    assert numbers(user.ok(*words, "--platform", "gpu", "--repeat", "3")) == [3030]
    assert "an empty handler" in user.ok(*words, "--bench", "0.01")


def test_a_handler_that_is_too_new_for_the_runtime_is_refused(user: User) -> None:
    text = user.refuses("handlers.so", "Stages", "--attr", "k=1", "--result", "i64[1]",
                        "--api", "1")  # fmt: skip
    assert "(0.2)" in text
    assert "(0.1)" in text


def test_bench_prints_times_and_the_machine(user: User) -> None:
    out = user.ok("handlers.so", "RmsNorm", "--arg", "f32[8,8]=1", "--attr", "eps=1",
                  "--result", "f32[8,8]", "--bench", "0.05").splitlines()  # fmt: skip
    row = r"minimum ([\d.]+) (ns|us|ms), median ([\d.]+) (ns|us|ms) per call; \d+ calls in \d+ rounds"
    assert re.fullmatch(r"RmsNorm +" + row, out[0])
    assert re.fullmatch(r"an empty handler +" + row, out[1])
    assert re.fullmatch(r".+, \d+ cores, \d{4}-\d\d-\d\d", out[2])


def test_bench_stops_at_an_error(user: User) -> None:
    text = user.fails(1, "kernels.so", "checked", "--arg", "f32[2]=-1", "--bench=0.1")
    assert text == "UNKNOWN: checked: returned status 7; 0 is success\n"


# ---- the command line ----


def test_help_and_version(user: User) -> None:
    assert user.ok("--help").startswith("usage: jaxc-run LIBRARY HANDLER [options]\n")
    assert user.ok("--version") == "jaxc-run 9.8.7, XLA FFI API 0.1 to 0.5\n"


def test_help_names_every_option(user: User) -> None:
    source = (ROOT / "src/run/options.c").read_text()
    text = user.ok("--help")
    names = set(re.findall(r'\{"(--[a-z-]+)"', source)) - {"--help", "--version", "--output"}
    assert len(names) > 15
    assert {name for name in names if name not in text} == set()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no library is given; expected jaxc-run LIBRARY HANDLER, and --help shows more"),
        ("handlers.so", "no handler is given after library 'handlers.so'; --list shows what it has"),
        ("handlers.so Copy x.npy", "'x.npy' is one word too many, after library 'handlers.so' and handler 'Copy'; arrays are given by --arg"),
        ("handlers.so Copy --args x", "there is no option '--args'; --help shows all"),
        ("handlers.so Copy --arg", "--arg needs a value after it"),
        ("handlers.so Copy --list=3", "--list takes no value, got '3'"),
        ("handlers.so Copy --api 6", "--api: expected a whole number from 1 to 5, got '6'"),
        ("handlers.so Copy --repeat 0", "--repeat: expected a whole number from 1 to 9223372036854775807, got '0'"),
        ("handlers.so Copy --repeat x", "--repeat: expected a whole number from 1 to 9223372036854775807, got 'x'"),
        ("handlers.so Copy --misalign 64", "--misalign: expected a whole number from 0 to 63, got '64'"),
        ("handlers.so Copy --fail-allocation 0", "--fail-allocation: expected a whole number from 1 to 9223372036854775807, got '0'"),
        ("handlers.so Copy --short-frame 169", "--short-frame: expected a whole number from 0 to 168, got '169'"),
        ("handlers.so Copy --unknown-extensions -1", "--unknown-extensions: expected a whole number from 0 to 1000, got '-1'"),
        ("handlers.so Copy --threads many", "--threads: expected a number from 0 to 1024, 'inline', 'late' or 'none', got 'many'"),
        ("handlers.so Copy --threads -3", "--threads: expected a number from 0 to 1024, 'inline', 'late' or 'none', got '-3'"),
        ("handlers.so Copy --timeout 0", "--timeout: expected a whole number from 1 to 1000000, got '0'"),
        ("handlers.so Copy --timeout 1.5", "--timeout: expected a whole number from 1 to 1000000, got '1.5'"),
        ("handlers.so Copy --fail-request 0", "--fail-request: expected a whole number from 1 to 9223372036854775807, got '0'"),
        ("handlers.so Copy --fail-error x", "--fail-error: expected a whole number from 1 to 9223372036854775807, got 'x'"),
        ("handlers.so Copy --exact=1", "--exact takes no value, got '1'"),
        ("handlers.so Copy --no-check=1", "--no-check takes no value, got '1'"),
        ("handlers.so Copy --check --no-check", "--no-check: --check does nothing but compare; expected one of them"),
        ("handlers.so Copy --arg float[2]=2", "--arg float[2]=2: unknown type float; expected a name of NumPy or XLA, such as float32[8,4] or f32[], or a file"),
        ("handlers.so Copy --arg double[]", "--arg double[]: unknown type double; expected a name of NumPy or XLA, such as float32[8,4] or f32[], or a file"),
        ("handlers.so Copy --arg int=3", "--arg int=3: unknown type int; expected a name of NumPy or XLA, such as float32[8,4] or f32[], or a file"),
        ("handlers.so Copy --arg x=3.npy", "--arg x=3.npy: cannot be opened: No such file or directory"),
        ("handlers.so Copy --arg float", "--arg float: cannot be opened: No such file or directory"),
        ("handlers.so Copy --platform tpu", "--platform: expected 'cpu' or 'gpu', got 'tpu'"),
        ("handlers.so Copy --bench=0", "--bench: expected seconds above 0 and up to 86400, got '0'"),
        ("handlers.so Copy --bench --repeat 3", "--repeat: --bench finds the number of calls itself, got 3"),
        ("handlers.so Copy --bench -o y.npy", "-o: --bench writes no results, got 'y.npy'"),
        ("handlers.so Copy --arg u8[1] --result u8[1] --alias 0", "--alias: expected ARG:RESULT, two numbers from 0 on, got '0'"),
        ("handlers.so Copy --arg u8[1] --result u8[1] --alias 0:x", "--alias: expected ARG:RESULT, two numbers from 0 on, got '0:x'"),
        ("handlers.so Copy --arg f32[3 --result f32[3]", "--arg 'f32[3' has no ',' or ']' after size 0; expected it as in f32[8,4]"),
        ("handlers.so Copy --arg f32[-3]", "--arg 'f32[-3]' has no size where '-3]' begins; expected sizes from 0 on, such as f32[8,4]"),
        ("handlers.so Copy --arg f32[99999999999999999999]", "--arg expected a whole number from 0 to 9223372036854775807, got '99999999999999999999'"),
        ("handlers.so Copy --arg f32[4294967296,4294967296]", "--arg 'f32[4294967296,4294967296]' has more bytes than an int64 counts"),
        ("handlers.so Copy --arg f32[3]x", "--arg 'f32[3]x' has 'x' after its shape; expected nothing or '=VALUE'"),
        ("handlers.so Copy --arg i8[3]=300", "--arg 300 is outside the range of int8: expected -128 to 127"),
        ("handlers.so Copy --arg f32[3]=1e39", "--arg 1e39 is outside the range of float32"),
        ("handlers.so Copy --arg f16[3]=65520", "--arg 65520 is outside the range of float16"),
        ("handlers.so Copy --arg f8e4m3fn[3]=1000", "--arg 1000 is outside the range of float8_e4m3fn"),
        ("handlers.so Copy --arg s4[3]=1", "--arg values of int4 cannot be written here; expected bool, an integer of 8 bits or more, a float that C or jaxc/types.h has, or complex"),
        ("handlers.so Copy --result float", "--result: 'float' in 'float' is no element type; expected a name of NumPy or XLA and sizes, such as float32[8,4] or f32[]"),
        ("handlers.so Copy --result f32[3]=1", "--result f32[3]=1: expected a type such as f32[8,4], got '=1' after it"),
        ("handlers.so Copy --arg none.npy", "--arg none.npy: cannot be opened: No such file or directory"),
        ("handlers.so Copy --arg u8[1] --result u8[1] -o a -o b", "-o b: expected at most 1 of them, one for each result, got 2; --result says what a result is"),
        ("handlers.so Copy --arg s4[2] --result s4[2] -o y.npy", "-o y.npy: a .npy file cannot hold elements of type int4"),
        ("handlers.so Copy --arg u8[1] --result u8[1] -o no/y.npy", "-o no/y.npy: cannot be written: No such file or directory"),
    ],
)  # fmt: skip
def test_wrong_usage_says_what_was_expected(user: User, words: str, message: str) -> None:
    assert user.refuses(*words.split()) == message


def test_an_alias_of_what_is_not_there_is_refused(user: User) -> None:
    text = user.refuses("handlers.so", "Copy", "--arg", "u8[1]", "--result", "u8[1]",
                        "--alias", "0:1")  # fmt: skip
    assert text.startswith("--alias 0:1: ")


def test_a_library_that_cannot_be_loaded_gives_the_reason(user: User) -> None:
    text = user.refuses("none.so", "x")
    assert text.startswith("library 'none.so' cannot be loaded: ")
    user.write("text.so", b"this is no library")
    assert user.refuses("text.so", "x").startswith("library 'text.so' cannot be loaded: ")


def test_a_table_of_another_version_is_refused(user: User) -> None:
    (user.folder / "old.c").write_text(
        "#include <jaxc/library.h>\n"
        "JAXC_EXPORT jaxc_library jaxc_library_table = {sizeof(jaxc_library), 99, 0, 0, 0, 0, 0};\n"
    )
    compile_c(user.folder / "old.so", [user.folder / "old.c"], "-shared", "-fPIC")
    assert user.refuses("old.so", "--list") == (
        "old.so: its jaxc_library_table has version 99, expected version 1"
    )


def test_a_damaged_table_is_refused(user: User) -> None:
    (user.folder / "bad.c").write_text(
        "#include <jaxc/library.h>\n"
        'static const jaxc_function f = {.struct_size = sizeof f, .name = "f",\n'
        '  .prototype = "void f(void)", .parameter_count = 3};\n'
        "static const jaxc_function *const all[] = {&f};\n"
        "JAXC_EXPORT jaxc_library jaxc_library_table = {sizeof(jaxc_library),\n"
        '  JAXC_LIBRARY_ABI, 1, "0", "bad", "0", all};\n'
    )
    compile_c(user.folder / "bad.so", [user.folder / "bad.c"], "-shared", "-fPIC")
    assert user.refuses("bad.so", "f") == (
        "bad.so: entry 0 of its jaxc_library_table is damaged"
    )


# ---- files ----

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type_come_back(user: User, dtype: str) -> None:
    data = np.random.default_rng(1).integers(0, 2, (3, 1, 5)).astype(dtype)
    if dtype != "bool":
        data = (data * 3 - 1).astype(dtype)
    user.save("x.npy", data)
    user.ok("handlers.so", "Copy", "--arg", "x.npy", "--result", f"{dtype}[3,1,5]",
            "-o", "y.npy")  # fmt: skip
    back = user.load("y.npy")
    assert back.dtype == data.dtype
    np.testing.assert_array_equal(back, data)


@pytest.mark.parametrize(
    ("name", "numpy"), [("bf16", "bfloat16"), ("f8e4m3fn", "float8_e4m3fn"), ("f8e5m2", "float8_e5m2")]
)  # fmt: skip
def test_types_that_numpy_has_no_name_for_come_back(user: User, name: str, numpy: str) -> None:
    dtype = getattr(ml_dtypes, numpy)
    data = np.arange(-3, 3).astype(dtype)
    user.save("x.npy", data)
    user.ok("handlers.so", "Copy", "--arg", f"x.npy:{name}", "--result", f"{numpy}[6]",
            "-o", "y.npy")  # fmt: skip
    np.testing.assert_array_equal(user.load("y.npy").view(dtype), data)
    shown = user.ok("handlers.so", "Copy", "--arg", f"x.npy:{name}", "--result", f"{name}[6]")
    assert numbers(shown) == [-3, -2, -1, 0, 1, 2]
    assert "numpy has no name for" in user.refuses(
        "handlers.so", "Copy", "--arg", "x.npy", "--result", f"{name}[6]"
    ).lower()  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [("f16[1]=0.1", np.float16(0.1)), ("f16[1]=6e-8", np.float16(6e-8)),
     ("f16[1]=65504", np.float16(65504)), ("f16[1]=-inf", np.float16(-np.inf)),
     ("f32[1]=0.1", np.float32(0.1)), ("f64[1]=1e-310", 1e-310), ("u64[1]=18446744073709551615", np.uint64(2**64 - 1)),
     ("i64[1]=-9223372036854775808", np.int64(-(2**63))), ("i16[1]=-32768", np.int16(-32768)),
     ("pred[1]=True", True), ("c64[1]=(1-2j)", np.complex64(1 - 2j)), ("c128[1]=3j", 3j)],
)  # fmt: skip
def test_one_value_fills_an_array(user: User, text: str, value: Any) -> None:
    user.ok("handlers.so", "Copy", "--arg", text, "--result", text.split("=")[0], "-o", "y.npy")
    assert user.load("y.npy")[0] == value


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 64], ids=str)
def test_shapes_at_the_edges_come_back(user: User, shape: tuple[int, ...]) -> None:
    if len(shape) > 32 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("this NumPy has at most 32 axes")
    user.save("x.npy", np.ones(shape, np.int32))
    sizes = ",".join(map(str, shape))
    user.ok("handlers.so", "Copy", "--arg", "x.npy", "--result", f"s32[{sizes}]", "-o", "y.npy")
    back = user.load("y.npy")
    assert back.shape == shape
    assert (back == 1).all()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(user: User, version: tuple[int, int]) -> None:
    with (user.folder / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version=version)
    out = user.ok("handlers.so", "Copy", "--arg", "x.npy", "--result", "f32[4,3]")
    assert numbers(out) == list(range(12))


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    size = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + header.encode() + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


@pytest.mark.parametrize(
    "header",
    [GOOD, GOOD + "   \n", '{"shape":(2L,),"descr":"<f4","fortran_order":False}',
     "{'descr': 'f4', 'fortran_order': True, 'shape': (2,)}"],
)  # fmt: skip
def test_headers_that_others_write_are_read(user: User, header: str) -> None:
    user.write("x.npy", npy(header, np.float32([1, 2]).tobytes()))
    out = user.ok("handlers.so", "Copy", "--arg", "x.npy", "--result", "f32[2]")
    assert numbers(out) == [1, 2]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file ends inside its header; it is no whole .npy file"),
        (b"PK\x03\x04 and more", "is no .npy file: it does not begin as numpy.save begins it"),
        (b"\x93NUMPY\x04\x00\x00\x00", "has format version 4.0, expected 1.0, 2.0 or 3.0"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "the file ends inside its header; it is no whole .npy file"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "the header is damaged: it claims 4294967295 bytes"),
        (npy("{'descr': '<f4'\0"), "the header has byte 0x00 at 15, expected ASCII text"),
        (npy("{'\x1b[31m"), "the header has byte 0x1b at 2, expected ASCII text"),
        (npy(""), "the header is damaged: expected '{' at ''"),
        (npy("{"), "the header is damaged: expected a key at ''"),
        (npy("{}"), "the header is damaged: expected descr, fortran_order and shape before the end at ''"),
        (npy(GOOD + "x"), "the header is damaged: expected the end at 'x'"),
        (npy(GOOD.replace("(2,)", "(-2,)")), "the header is damaged: expected a size at '-2,), }'"),
        (npy(GOOD.replace("(2,)", "2")), "the header is damaged: expected a tuple of sizes at '2, }'"),
        (npy(GOOD.replace("(2,)", "(99999999999999999999,)")), "the header is damaged: expected a size that an int64 holds at '99999999999999999999,), '"),
        (npy(GOOD.replace("(2,)", "(9223372036854775807,9)")), "the header is damaged: its shape has more bytes than memory can have"),
        (npy(GOOD.replace("(2,)", "(" + "1," * 65 + ")")), "has more than 64 axes"),
        (npy(GOOD.replace("False", "Maybe")), "the header is damaged: expected True or False at 'Maybe, 'shape': (2,), }'"),
        (npy(GOOD.replace("'shape'", "'shave'")), "the header has the unknown key 'shave'"),
        (npy(GOOD.replace("'shape': (2,)", "'descr': '<f4'")), "the header is damaged: expected no key a second time at ': '<f4', }'"),
        (npy(GOOD.replace("'<f4'", "[('a', '<f4')]")), "holds records of several fields, which no XLA array has"),
        (npy(GOOD.replace("<f4", "<U3")), "holds elements of type '<U3', which no XLA array has"),
        (npy(GOOD.replace("<f4", "<f16")), "holds elements of type '<f16', which no XLA array has"),
        (npy(GOOD.replace("<f4", "|O")), "holds elements of type '|O', which no XLA array has"),
        (npy(GOOD.replace("<f4", ">f4")), "is big-endian ('>f4'); in NumPy, x.astype(x.dtype.newbyteorder('<')) makes it little-endian"),
        (npy(GOOD.replace("<f4", "|V2")), "holds 2-byte elements that NumPy has no name for ('|V2'); name their type, such as 'x.npy:bf16'"),
        (npy(GOOD.replace("False", "True").replace("(2,)", "(2, 1)")), "is in Fortran order; in NumPy, np.ascontiguousarray(x) makes it C order"),
        (npy(GOOD, b"1234567"), "has 7 bytes of elements, expected 8 for float32[2]"),
        (npy(GOOD, b"123456789"), "has 9 bytes of elements, expected 8 for float32[2]"),
        (npy(GOOD.replace("<f4", "|b1"), b"\x01\x02"), "element 1 of the bools is 2, expected 0 or 1"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(user: User, data: bytes, message: str) -> None:
    user.write("x.npy", data)
    assert user.refuses("handlers.so", "Copy", "--arg", "x.npy") == f"--arg x.npy: {message}"


def test_a_named_type_must_be_the_files(user: User) -> None:
    user.save("x.npy", X)
    assert user.refuses("handlers.so", "Copy", "--arg", "x.npy:bf16") == (
        "--arg x.npy: holds elements of type '<f4', expected bfloat16 as named"
    )
    user.ok("handlers.so", "Copy", "--arg", "x.npy:f32", "--result", "f32[4,3]")


def test_a_folder_is_no_file(user: User) -> None:
    (user.folder / "x.npy").mkdir()
    assert user.refuses("handlers.so", "Copy", "--arg", "x.npy") == (
        "--arg x.npy: cannot be read: Is a directory"
    )


def test_a_file_may_be_named_like_a_type(user: User) -> None:
    np.save(user.folder / "f32.npy", X)
    (user.folder / "f32.npy").rename(user.folder / "f32")
    user.ok("handlers.so", "Copy", "--arg", "./f32", "--result", "f32[4,3]")


def test_a_file_may_be_named_like_an_unknown_type(user: User) -> None:
    np.save(user.folder / "x.npy", X)
    (user.folder / "x.npy").rename(user.folder / "x[1]=2")
    user.ok("handlers.so", "Copy", "--arg", "x[1]=2", "--result", "f32[4,3]")


def test_no_mutation_of_a_file_crashes_the_program(user: User) -> None:
    user.save("x.npy", X)
    whole = (user.folder / "x.npy").read_bytes()
    chance = random.Random(7)
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(80)] = chance.choice(
                b"\0\x01\xff'(),:[]{}0123456789TFL<>|=bifcuV"
            )
        user.write(
            "bad.npy", bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
        )
        done = user.run("handlers.so", "Copy", "--arg", "bad.npy", "--result", "f32[4,3]")
        assert done.returncode in (0, 1, 2), (bytes(data), done.stderr)
