"""``jaxc.callback`` and ``register_callback``: Python functions on XLA's memory."""

from __future__ import annotations

import functools
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

import jaxc


@jaxc.callback("(n),(n)->(n)")
def mix(x: Any, y: Any, out: Any, *, weight: float = 0.5, mode: str | None = None) -> None:
    """Mixes two arrays."""
    assert mode in (None, "plain")
    np.multiply(x, x.dtype.type(weight), out=out)
    out += y


@jaxc.callback("(n)->(),(n)")
def centre(x: Any, mean: Any, rest: Any) -> None:
    mean[()] = x.mean()
    np.subtract(x, mean, out=rest)


@jaxc.callback("(n),(k)->(n-k+1)")
def fir(x: Any, w: Any, y: Any) -> None:
    y[:] = np.convolve(x, w, "valid")


@jaxc.callback("(n)->()")
def total(x: Any, out: Any) -> None:
    if x[0] < 0:
        raise KeyError("negative")
    out[()] = x.sum()


def of(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# ---- calls ----


def test_values_and_names() -> None:
    x, y = of(3, 4), of(4)
    np.testing.assert_array_equal(mix(x, y), x * np.float32(0.5) + y)
    np.testing.assert_array_equal(mix(x, y=y, weight=2), x * 2 + y)
    np.testing.assert_array_equal(jax.jit(mix)(x, y), mix(x, y))
    mean, rest = centre(x)
    np.testing.assert_array_equal(mean, x.mean(1))
    np.testing.assert_array_equal(rest, x - x.mean(1)[:, None])
    np.testing.assert_allclose(fir(y, y[:2]), np.convolve(y, y[:2], "valid"), rtol=1e-6)
    assert mix.signature == "(n),(n)->(n)"
    assert mix.__name__ == "mix"
    assert mix.__doc__ == "Mixes two arrays."
    assert repr(mix) == "<jaxc callback mix (n),(n)->(n)>"


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint16", "int32", "float16", "float32", "complex64", "bfloat16",
     "float8_e5m2"],
)  # fmt: skip
def test_dtypes(dtype: str) -> None:
    seen = []

    @jaxc.callback("(n)->(n)")
    def same(x: Any, out: Any) -> None:
        seen.append((x.dtype, out.dtype, x.flags.writeable, out.flags.writeable))
        out[:] = x

    x = jnp.arange(3).astype(dtype)
    np.testing.assert_array_equal(same(x), x)
    assert seen == [(x.dtype, x.dtype, False, True)]


def test_wide_dtypes_need_x64(x64: None) -> None:
    x = np.arange(3.0)
    assert mix(x, x).dtype == np.float64
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(
        TypeError, match=r"mix: 'x' is float64 \(x: float64\[n\]\), and JAX has"
    ):
        mix(x, x)


def test_dtypes_of_outputs() -> None:
    def count(x: Any, y: Any, out: Any) -> None:
        out[()] = len(x)

    x = of(4)
    assert jaxc.callback("(n),(n)->()")(count)(x, x.astype(np.int32)).dtype == np.float32
    assert jaxc.callback("(n),(n)->()", dtype=np.int32)(count)(x, x).dtype == np.int32
    by_rule = jaxc.callback("(n),(n)->()", dtype=lambda x, y: y)(count)
    assert by_rule(x, x.astype(np.float16)).dtype == np.float16

    @jaxc.callback("(n)->(n),()", dtype=(np.float32, "int32"))
    def sort(x: Any, out: Any, largest: Any) -> None:
        out[:] = np.sort(x)
        largest[()] = x.argmax()

    out, largest = sort(x)
    assert (out.dtype, largest.dtype) == (np.float32, np.int32)
    assert largest == x.argmax()


def test_a_number_takes_the_dtype_of_the_arrays_of_its_kind() -> None:
    seen = []

    @jaxc.callback("(n),()->(n)")
    def scale(x: Any, a: Any, out: Any) -> None:
        seen.append(a.dtype)
        out[:] = x * a

    x = of(3)
    scale(x.astype(np.float16), 2.0)
    scale(x, 2)
    jax.jit(scale)(x.astype(np.float16), jnp.float32(1).astype(float) * 0 + 2.0)
    assert seen[:2] == [np.float16, np.int32]


def test_static_values_and_static_dimensions() -> None:
    seen = []

    @jaxc.callback("()->(n)")
    def ramp(a: Any, out: Any, **static: Any) -> None:
        seen.append(static)
        out[:] = a * np.arange(out.size, dtype=np.float32)

    np.testing.assert_array_equal(ramp(2.0, n=3), [0, 2, 4])
    values = {"flag": True, "count": 3, "rate": 0.5, "z": 1 + 2j, "text": "täxt", "empty": ""}
    ramp(1.0, n=2, **values)
    assert seen == [{}, values]
    assert [type(v) for v in seen[1].values()] == [type(seen[1][k]) for k in seen[1]]
    assert {k: type(v) for k, v in seen[1].items()} == {k: type(v) for k, v in values.items()}
    jax.jit(lambda a: ramp(a, n=2, count=np.int64(-(2**63))))(1.0)
    assert seen[2] == {"count": -(2**63)}
    with pytest.raises(TypeError, match="ramp: argument 'n' is missing"):
        ramp(1.0)
    with pytest.raises(TypeError, match=r"static value 'a_list' must be a bool, int, float"):
        ramp(1.0, n=2, a_list=[1])


def test_none_is_left_to_the_function() -> None:
    x = of(2)
    mix(x, x, mode="plain")
    mix(x, x, mode=None)
    with pytest.raises(TypeError, match=r"static value .weight. must be a bool.*got None"):
        mix(x, x, weight=None)


@pytest.mark.parametrize("leading", [(), (0,), (1,), (2, 3)])
def test_vmap_and_leading_axes(leading: tuple[int, ...]) -> None:
    x, y = of(*leading, 4), of(4)
    expected = x * np.float32(0.5) + y
    np.testing.assert_array_equal(mix(x, y), expected)
    mapped: Any = mix
    for _ in leading:
        mapped = jax.vmap(mapped, (0, None))
    np.testing.assert_array_equal(mapped(x, y), expected)
    np.testing.assert_array_equal(jax.jit(mapped)(x, y), expected)


def test_other_transformations() -> None:
    x = of(5, 4)
    np.testing.assert_array_equal(jax.lax.map(lambda r: mix(r, r), x), mix(x, x))
    _, out = jax.lax.scan(lambda c, r: (mix(c, r), c), x[0], x)
    assert out.shape == (5, 4)
    assert jax.eval_shape(mix, x, x[0]).shape == (5, 4)
    assert jax.lax.cond(True, lambda a: mix(a, a), lambda a: a, x[0]).shape == (4,)
    # one call, with operands as they are
    text = jax.jit(jax.vmap(mix, (0, None))).lower(x, x[0]).as_text()
    assert text.count("custom_call") == 1
    assert "tensor<4xf32>" in text


def test_the_whole_batch_in_one_call() -> None:
    seen = []

    @jaxc.callback("(n),()->(n)", vectorized=True)
    def scale(x: Any, a: Any, out: Any) -> None:
        seen.append((x.shape, x.strides, a.shape, a.strides, out.shape))
        np.multiply(x, a[..., None], out=out)

    x = of(3, 4)
    np.testing.assert_array_equal(scale(x, 2.0), x * 2)
    assert seen.pop() == ((3, 4), (16, 4), (3,), (0,), (3, 4))
    a = np.arange(2, dtype=np.float32)
    out = jax.jit(jax.vmap(scale, (None, 0)))(x, a)
    np.testing.assert_array_equal(out, x * a[:, None, None])
    assert seen.pop() == ((2, 3, 4), (0, 16, 4), (2, 3), (4, 0), (2, 3, 4))
    assert scale(x[:0], 2.0).shape == (0, 4)
    assert scale(x[0], 2.0).shape == (4,)
    assert [s[0] for s in seen] == [(4,)]


def test_an_empty_core_axis_is_called() -> None:
    assert total_of_nothing(np.zeros((2, 0), np.float32)).tolist() == [7, 7]


@jaxc.callback("(n)->()")
def total_of_nothing(x: Any, out: Any) -> None:
    out[()] = x.sum() + 7


def test_derivatives() -> None:
    @jaxc.callback("(n)->(n)")
    def cube(x: Any, out: Any) -> None:
        np.power(x, 3, out=out)

    x = of(3)
    with pytest.raises(NotImplementedError, match=r"cube has no derivative: give a rule with"):
        jax.grad(lambda x: cube(x).sum())(x)

    @cube.defjvp
    def cube_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        return cube(x), 3 * x**2 * dx

    np.testing.assert_allclose(jax.grad(lambda x: cube(x).sum())(x), 3 * x**2, rtol=1e-6)
    second = jax.hessian(lambda x: cube(x).sum())(x)
    np.testing.assert_allclose(second, np.diag(6 * x), rtol=1e-5)

    @jaxc.callback("(n)->()")
    def norm(x: Any, out: Any, *, scale: float = 1.0) -> None:
        out[()] = scale * (x * x).sum()

    norm.defvjp(
        lambda x, scale: (norm(x, scale=scale), x),
        lambda x, ct, scale: (2 * scale * ct[..., None] * x,),
    )
    np.testing.assert_allclose(jax.grad(lambda x: norm(x, scale=3.0))(x), 6 * x, rtol=1e-6)


def test_effects_are_kept_and_in_order() -> None:
    seen: list[float] = []

    @jaxc.callback("()->()", effect=True)
    def record(x: Any, out: Any) -> None:
        seen.append(float(x))
        out[()] = x

    @jax.jit
    def program(x: Any) -> Any:
        for i in range(5):
            record(x + i)  # its result is not used
        return x

    program(1.0)
    jax.effects_barrier()
    assert seen == [1, 2, 3, 4, 5]


def test_a_function_without_outputs_has_effects() -> None:
    seen = []

    @jaxc.callback("(n)->", effect=True)
    def note(x: Any) -> None:
        seen.append(x.tolist())

    @jax.jit
    def program(x: Any) -> Any:
        note(x)
        note(x + 1)
        return x

    program(np.ones(2, np.float32))
    jax.effects_barrier()
    assert seen == [[1, 1], [2, 2]]
    with pytest.raises(ValueError, match=r"nothing: signature '\(n\)->' has no output"):

        @jaxc.callback("(n)->")
        def nothing(x: Any) -> None: ...


def test_integer_results_are_constants_to_derivatives() -> None:
    @jaxc.callback("(n)->(n)", dtype=np.int32)
    def ranks(x: Any, out: Any) -> None:
        out[np.argsort(x)] = np.arange(x.size)

    x = jnp.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(jax.grad(lambda x: (x * ranks(x)).sum())(x), [2, 0, 1])


def test_check_takes_callbacks(capsys: pytest.CaptureFixture[str]) -> None:
    names = {outcome.what for outcome in jaxc.check(mix, of(4), of(4), weight=2.0)}
    assert {"every result is written", "vmap over x", "jit"} <= names
    assert "mix" in capsys.readouterr().out

    @jaxc.callback("(n)->(n)")
    def forgets(x: Any, out: Any) -> None:
        out[1:] = x[1:]

    with pytest.raises(AssertionError, match="forgets: every result is written"):
        jaxc.check(forgets, of(4))


# ---- errors ----


def test_exceptions_have_type_text_and_traceback() -> None:
    x = of(2, 3)
    x[0, 0], x[1, 0] = 1, -1
    with pytest.raises(JaxRuntimeError) as jitted:
        jax.jit(total)(x).block_until_ready()
    text = str(jitted.value)
    assert "total: KeyError: 'negative' (batch row 1 of 2)" in text
    assert "Traceback (most recent call last):" in text
    assert 'raise KeyError("negative")' in text
    assert text.rstrip().endswith("KeyError: 'negative'")
    with pytest.raises(JaxRuntimeError, match="KeyError: 'negative'") as eager:
        total(x)
    assert isinstance(eager.value.__cause__, KeyError)
    assert eager.value.__cause__.args == ("negative",)
    assert eager.value.__cause__.__traceback__ is not None


def test_an_exception_with_a_long_text() -> None:
    @jaxc.callback("()->()")
    def fails(x: Any, out: Any) -> None:
        raise RuntimeError("a" * 5000 + "end")

    with pytest.raises(JaxRuntimeError, match=r"a{5000}end"):
        fails(1.0)


def test_exceptions_that_do_not_print() -> None:
    class Broken(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise ValueError("no text")

    @jaxc.callback("()->()")
    def fails(x: Any, out: Any) -> None:
        raise Broken

    with pytest.raises(JaxRuntimeError, match="Broken"):
        fails(1.0)

    @jaxc.callback("()->()")
    def exits(x: Any, out: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(JaxRuntimeError, match="exits: SystemExit: 3"):
        jax.jit(exits)(1.0).block_until_ready()
    with pytest.raises(SystemExit):
        exits(1.0)

    @jaxc.callback("()->()")
    def half(x: Any, out: Any) -> None:
        raise ValueError("half a pair: \ud800")

    with pytest.raises(JaxRuntimeError, match=r"ValueError: half a pair: \\ud800"):
        half(1.0)


def test_what_is_not_written_in_place_is_an_error() -> None:
    x = of(3)

    @jaxc.callback("(n)->(n)")
    def returns(x: Any, out: Any) -> Any:
        return 2 * x

    with pytest.raises(
        JaxRuntimeError, match="returned a value of type ndarray; results are wr"
    ):
        returns(x)

    @jaxc.callback("(n)->(n)")
    def writes(x: Any, out: Any) -> None:
        x[0] = 1

    with pytest.raises(
        JaxRuntimeError, match="ValueError: assignment destination is read-only"
    ):
        writes(x)


def test_arrays_that_are_kept_are_an_error_and_safe_to_read() -> None:
    kept: list[Any] = []

    @jaxc.callback("(n)->(n)")
    def keeps(x: Any, out: Any) -> None:
        kept.append(x)
        out[:] = x

    x = jnp.asarray(of(3))
    text = r"it keeps 'x', or a view of it, after it has returned.* keep a copy: x\.copy\(\)"
    with pytest.raises(JaxRuntimeError, match=text):
        keeps(x)
    np.testing.assert_array_equal(kept[0], x)
    assert kept[0].base is not None

    @jaxc.callback("(n)->(n)")
    def keeps_view(x: Any, out: Any) -> None:
        out[:] = x
        kept.append(out[1:])

    with pytest.raises(JaxRuntimeError, match=r"it keeps 'out', or a view"):
        keeps_view(x)

    @jaxc.callback("(n)->(n)")
    def cycle(x: Any, out: Any) -> None:
        loop: list[Any] = [x]
        loop.append(loop)
        out[:] = x

    np.testing.assert_array_equal(cycle(x), x)


def test_an_exception_that_holds_the_arrays_is_no_second_error() -> None:
    @jaxc.callback("(n)->(n)")
    def fails(x: Any, out: Any) -> None:
        view = x[1:]
        raise ValueError(f"sum {view.size}")

    with pytest.raises(JaxRuntimeError, match="ValueError: sum 2") as error:
        fails(of(3))
    assert "keeps" not in str(error.value)


class Scaler:
    def __init__(self, factor: float):
        self.factor = np.float32(factor)

    def scale(self, x: Any, out: Any) -> None:
        np.multiply(x, self.factor, out=out)

    __call__ = scale


def test_methods_objects_and_partial_functions() -> None:
    x = of(3)
    np.testing.assert_array_equal(jaxc.callback("(n)->(n)")(Scaler(2).scale)(x), 2 * x)
    made = jaxc.callback("(n)->(n)")(Scaler(3))
    np.testing.assert_array_equal(made(x), 3 * x)
    assert made.__name__ == "Scaler"
    part = jaxc.callback("(n),(n)->(n)")(functools.partial(mix.function, weight=2.0))
    np.testing.assert_array_equal(part(x, x), 3 * x)
    assert part.__name__ == "mix"


def test_definitions_are_checked() -> None:
    def two(x: Any, out: Any) -> None: ...

    for text, message in [
        ("(n)", r"two: signature '\(n\)' has no '->'; write \(n\),\(n\)->\(n\)"),
        ("(n->(n)", r"is not understood at '\(n'"),
        ("(n%2)->(n)", r"the axis 'n%2' is not understood; an axis is a name"),
        ("(n)->", r"has no output"),
        ("(n),->(n)", r"ends in a comma"),
    ]:
        with pytest.raises(ValueError, match=message):
            jaxc.callback(text)(two)
    with pytest.raises(
        TypeError, match=r"two: takes 2 positional arguments \(x, out\), and is"
    ):
        jaxc.callback("(n),(n)->(n)")(two)
    with pytest.raises(TypeError, match=r"takes 2 positional arguments"):
        jaxc.callback("->(n)", dtype="float32")(two)
    with pytest.raises(TypeError, match=r"takes a signature first, as @jaxc\.callback"):
        jaxc.callback(two)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes a Python function, got"):
        jaxc.callback("(n)->(n)")(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"has no inputs, so give the dtype of its outputs"):
        jaxc.callback("->(n)")(lambda out: None)
    with pytest.raises(TypeError, match="an output of dtype <U3 is not possible in JAX"):
        jaxc.callback("(n)->(n)", dtype="U3")(two)
    with pytest.raises(TypeError, match="has 1 outputs, got 2 dtypes"):
        jaxc.callback("(n)->(n)", dtype=("float32", "float32"))(two)
    with pytest.raises(TypeError, match="'x' is an argument, and an axis that no input has"):
        jaxc.callback("(n)->(x)")(two)
    jaxc.callback("(x)->(x)")(two)
    with pytest.raises(
        TypeError, match=r"a method goes in bound: jaxc\.callback\(\.\.\.\)\(object"
    ):
        jaxc.callback("(n)->(n)")(Scaler.scale)


def test_calls_are_checked() -> None:
    x = of(3)
    with pytest.raises(TypeError, match="mix: argument 'y' is missing"):
        mix(x)
    with pytest.raises(TypeError, match=r"mix: takes 2 arrays \(x, y\), got 3; static values"):
        mix(x, x, x)
    with pytest.raises(
        TypeError, match="mix: has no argument 'w'; it takes x, y, weight, mode"
    ):
        mix(x, x, w=1)
    with pytest.raises(TypeError, match="mix: argument 'x' is given by position and by name"):
        mix(x, x=x)
    with pytest.raises(TypeError, match="mix: argument 'x' is a list, expected an array"):
        mix([1.0], x)
    with pytest.raises(TypeError, match=r"argument 'x' has dtype <U1, which a NumPy view"):
        mix(np.array(["a"]), x)
    with pytest.raises(
        TypeError, match=r"total: argument 'x' has dtype key<fry>, which a NumPy"
    ):
        total(jax.random.key(0))
    with pytest.raises(ValueError, match=r"mix: dimension n is 3 in 'x' .* but 2 in 'y'"):
        mix(x, x[:2])
    with pytest.raises(TypeError, match="'weight' is static and must be a Python value, got a"):
        jax.jit(lambda w: mix(x, x, weight=w))(1.0)


# ---- processes and threads ----


def test_pickle_and_equality() -> None:
    assert pickle.loads(pickle.dumps(mix)) is mix
    mix(of(2), of(2))
    (member,) = [m for m in mix.members if len(m.description.with_role(5)) == 1][:1]
    assert pickle.loads(pickle.dumps(member)) == member

    @jaxc.callback("(n)->(n)")
    def local(x: Any, out: Any) -> None: ...

    with pytest.raises(
        TypeError, match=r"local: is no name of a module, and cannot be pickled"
    ):
        pickle.dumps(local)


def test_two_functions_of_one_name_are_two() -> None:
    def make(add: float) -> Any:
        @jaxc.callback("(n)->(n)")
        def shifted(x: Any, out: Any) -> None:
            np.add(x, np.float32(add), out=out)

        return shifted

    x = of(3)
    first, second = make(1), make(2)
    both = jax.jit(lambda x: (first(x), second(x)))(x)
    np.testing.assert_array_equal(both[0], x + 1)
    np.testing.assert_array_equal(both[1], x + 2)


def test_many_threads() -> None:
    x = of(16)
    f = jax.jit(lambda x: mix(mix(x, x), x))
    expected = f(x)
    failures = []

    def work() -> None:
        for _ in range(100):
            if not np.array_equal(f(x), expected):
                failures.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_a_call_allocates_is_freed() -> None:
    x = jnp.asarray(of(1000))

    @jax.jit
    def many(x: Any) -> Any:
        return jax.lax.fori_loop(0, 200, lambda i, x: mix(x, x), x)

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    def work(times: int) -> None:
        for _ in range(times):
            many(x).block_until_ready()
            with pytest.raises(JaxRuntimeError):
                total(-jnp.abs(x) - 1)

    work(20)
    before = objects()
    work(40)
    assert objects() - before < 100


PROGRAM = """
import time, jax, jax.numpy as jnp, numpy as np, jaxc

@jaxc.callback("(n)->(n)")
def slow(x, out):
    time.sleep(0.001)
    np.add(x, 1, out=out)

@jaxc.callback("(n)->(n)")
def fails(x, out):
    raise ValueError("no")
"""


def run(text: str, *, one_core: bool = False, **environment: str) -> str:
    """A program in a process of its own, which must end by itself; returns what it prints."""
    preamble = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            (preamble if one_core else "") + PROGRAM + textwrap.dedent(text),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("one_core", [False, True], ids=["all cores", "one core"])
def test_many_calls_with_large_arrays_do_not_wait_for_each_other(one_core: bool) -> None:
    if one_core and not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no sched_setaffinity")
    out = run(
        """
        step = jax.jit(lambda x: slow(x) * 1.0)
        x = jnp.zeros(1 << 18)                     # 1 MiB
        for _ in range(200):
            x = step(x)                            # dispatched, not waited for
        many = [step(jnp.full(1 << 18, i)) for i in range(8)]
        print(float(x[0]), [float(y[-1]) for y in many])
        """,
        one_core=one_core,
    )
    assert out.strip() == "200.0 [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]"


def test_a_process_that_ends_while_callbacks_run() -> None:
    run(
        """
        step = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda i, x: slow(x), x))
        for _ in range(3):
            y = step(jnp.zeros(4))
        print("end", flush=True)
        """
    )


def test_a_child_of_a_process_that_is_in_a_callback_ends() -> None:
    out = run(
        """
        import os, warnings
        warnings.simplefilter("ignore")            # JAX warns of forks
        step = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, x: slow(x), x))
        y = step(jnp.zeros(4))
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            jaxc.callbacks._jaxc.close_interpreter()
            os._exit(7)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), float(y[0]))
        """
    )
    assert out.strip() == "7 300.0"


def test_a_callback_in_a_program_of_another_process(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers", reason="exporting needs flatbuffers")
    (tmp_path / "own_callbacks.py").write_text(
        "import jaxc, numpy as np\n"
        "@jaxc.callback('(n)->(n)')\n"
        "def double(x, out, *, by=2.0): np.multiply(x, np.float32(by), out=out)\n"
    )
    path = str(tmp_path / "program")
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    run(
        f"""
        import own_callbacks
        program = jaxc.export(jax.jit(own_callbacks.double), jnp.zeros(3))
        open({path!r}, "wb").write(program.serialize())
        try:
            jaxc.bundle({path + "x"!r}, program)
        except ValueError as error:
            print(error)
        """,
        **env,
    )
    out = run(
        f"""
        data = open({path!r}, "rb").read()
        try:
            jaxc.deserialize(data)
        except ValueError as error:
            print(error)
        import own_callbacks
        print(jaxc.deserialize(data).call(jnp.ones(3)))
        """,
        **env,
    )
    first, second = out.strip().splitlines()
    assert first.startswith(
        "the program calls 'double' of library 'callback/own_callbacks' (bu"
    )
    assert "import the module that defines it" in first
    assert second == "[2. 2. 2.]"


def test_programs_never_take_another_closure(tmp_path: Path) -> None:
    """Two of one factory have one name, and only this process can tell them apart."""
    pytest.importorskip("flatbuffers", reason="exporting needs flatbuffers")
    (tmp_path / "factory.py").write_text(
        "import jaxc\n"
        "def make(by, name=None):\n"
        "    @jaxc.callback('(n)->(n)', name=name)\n"
        "    def scaled(x, out): out[:] = by * x\n"
        "    return scaled\n"
        "three, five = make(3), make(5)\n"
        "named = make(7, 'factory.seven')\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    run(
        f"""
        import factory
        for name in ("three", "five", "named"):
            exported = jaxc.export(jax.jit(getattr(factory, name)), jnp.ones(2))
            open({str(tmp_path)!r} + "/" + name, "wb").write(exported.serialize())
        """,
        **env,
    )
    out = run(
        f"""
        import factory
        factory.five(jnp.ones(2)), factory.three(jnp.ones(2))
        for name in ("three", "five", "named"):
            try:
                program = jaxc.deserialize(open({str(tmp_path)!r} + "/" + name, "rb").read())
                print(program.call(jnp.ones(2)))
            except ValueError as error:
                print(error)
        """,
        **env,
    )
    three, five, named = out.strip().splitlines()
    text = "it was made in that process alone: a callback that is defined in a function"
    assert text in three
    assert text in five
    assert named == "[7. 7.]"


def test_threads_wait_for_their_own_results() -> None:
    out = run(
        """
        import threading
        f = jax.jit(lambda x: slow(slow(x)))
        results = []
        threads = [threading.Thread(target=lambda: results.append(float(f(jnp.zeros(3))[0])))
                   for _ in range(5)]
        [t.start() for t in threads]; [t.join() for t in threads]
        print(results)
        """
    )
    assert out.strip() == "[2.0, 2.0, 2.0, 2.0, 2.0]"


# ---- the raw form ----


def test_register_callback() -> None:
    seen: list[Any] = []

    def scale(inputs: list[Any], outputs: list[Any], attrs: dict[str, Any], ctx: Any) -> None:
        seen.append((len(inputs), attrs, ctx, inputs[0].flags.writeable))
        np.multiply(inputs[0], attrs["factor"], out=outputs[0])

    jaxc.register_callback("test_scale", scale)
    jaxc.register_callback("test_scale", scale)
    x = of(2, 3)
    call = jax.ffi.ffi_call("test_scale", jax.ShapeDtypeStruct(x.shape, x.dtype))
    attributes: dict[str, Any] = {
        "factor": np.float32(3), "flag": True, "n": np.int64(-5), "u": np.uint8(200), "text": "täxt",
        "table": np.arange(3, dtype=np.int32), "inner": {"a": np.float64(0.5), "b": "c"},
    }  # fmt: skip
    out = jax.jit(lambda x: call(x, **attributes))(x)
    np.testing.assert_array_equal(out, x * 3)
    count, attrs, ctx, writeable = seen[0]
    assert (count, writeable) == (1, False)
    np.testing.assert_array_equal(attrs.pop("table"), attributes.pop("table"))
    assert attrs == attributes
    assert attrs["factor"].dtype == np.float32
    assert attrs["u"].dtype == np.uint8
    assert isinstance(ctx, jaxc.CallbackContext)
    assert (ctx.stage, ctx.platform, ctx.device_ordinal, ctx.stream) == (
        "execute",
        "cpu",
        0,
        None,
    )
    assert isinstance(ctx.run_id, int)
    with pytest.raises(
        ValueError, match="'test_scale': another handler has this name; names stay"
    ):
        jaxc.register_callback("test_scale", lambda *args: None)
    with pytest.raises(TypeError, match="'other': takes a function, got 3"):
        jaxc.register_callback("other", 3)  # type: ignore[arg-type]


def test_register_callback_errors() -> None:
    kept = []

    def fails(inputs: Any, outputs: Any, attrs: Any, ctx: Any) -> Any:
        if attrs["what"] == "raise":
            raise ZeroDivisionError("by zero")
        if attrs["what"] == "keep":
            kept.append(inputs[0])
        return outputs if attrs["what"] == "return" else None

    jaxc.register_callback("test_fails", fails)
    x = of(3)
    call = jax.ffi.ffi_call("test_fails", jax.ShapeDtypeStruct((3,), np.float32))

    def text(what: str) -> str:
        with pytest.raises(JaxRuntimeError) as error:
            jax.jit(lambda x: call(x, what=what))(x).block_until_ready()
        return str(error.value)

    assert "test_fails: ZeroDivisionError: by zero" in text("raise")
    assert "line" in text("raise")
    assert "it returned a value; results are written into `outputs`" in text("return")
    assert "it keeps input 0, or a view of it" in text("keep")
