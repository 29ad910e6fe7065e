"""The primitive under JAX's transformations, and what it lowers to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxc

SOURCE = r"""
#include <stdint.h>
void scale(int n, const float x[n], const float w[n], float a, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] * w[i] + a;
}
#pragma jaxc inout(x)
void twice(int n, float x[n]) {
  for (int i = 0; i < n; i++) x[i] *= 2;
}
void transpose(int m, int n, const float x[m][n], float y[n][m]) {
  for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) y[j][i] = x[i][j];
}
static int log_, calls;
#pragma jaxc effect
void note(float x) { log_ = log_ * 10 + (int)x; }
#pragma jaxc effect
int read_log(void) { int out = log_; log_ = 0; return out; }
float counted(float x) { calls++; return x; }
#pragma jaxc effect
int read_calls(void) { int out = calls; calls = 0; return out; }
#pragma jaxc effect inout(x)
void slow(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; log_++; }
"""


@pytest.fixture(scope="module")
def lib() -> jaxc.Library:
    return jaxc.compile(SOURCE, name="transforms")


def f32(*shape: int) -> Any:
    return jnp.arange(1, 1 + np.prod(shape), dtype=jnp.float32).reshape(shape)


def ref(x: Any, w: Any, a: Any) -> Any:
    return x * w + a


def calls_in(text: str) -> int:
    return len(re.findall(r"custom_call\s*@?\"?jaxc:|custom_call_target=\"jaxc:", text))


# ---- vmap ----


@pytest.mark.parametrize("in_axes", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0),
                                     (1, None, None), (1, 0, 0), (-1, 1, 0)])  # fmt: skip
@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("out_axes", [0, 1])
def test_vmap_over_any_axes(lib: jaxc.Library, in_axes: Any, size: int, out_axes: int) -> None:
    shapes = [(3,), (3,), ()]
    args = []
    for axis, shape in zip(in_axes, shapes, strict=True):
        full = list(shape)
        if axis is not None:
            full.insert(axis if axis >= 0 else len(full) + 1 + axis, size)
        args.append(f32(*full))
    ours = jax.vmap(lib.scale, in_axes, out_axes)(*args)
    theirs = jax.vmap(ref, in_axes, out_axes)(*args)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("jit", [False, True])
def test_nested_vmaps_over_different_operands_are_one_call(
    lib: jaxc.Library, jit: bool
) -> None:
    def nested(f: Any) -> Any:
        inner = jax.vmap(f, (None, 0, None))
        return jax.vmap(jax.vmap(inner, (0, None, None)), (None, None, 0))

    args = f32(4, 3), f32(5, 3), f32(2)
    ours = nested(lib.scale)
    if jit:
        ours = jax.jit(ours)
    np.testing.assert_allclose(ours(*args), nested(ref)(*args))
    text = jax.jit(nested(lib.scale)).lower(*args).as_text()
    assert calls_in(text) == 1
    # the operands keep their own sizes: nothing is broadcast before the call
    call = next(line for line in text.splitlines() if "jaxc:" in line)
    operands = call.rpartition(" : ")[2].partition("->")[0]
    assert operands.strip() == "(tensor<4x1x3xf32>, tensor<5x3xf32>, tensor<2x1x1xf32>)"
    compiled = jax.jit(nested(lib.scale)).lower(*args).compile().as_text()
    assert not re.search(r" (broadcast|copy|fusion|transpose)\(", compiled), compiled


def test_vmap_over_leading_axes_that_are_there(lib: jaxc.Library) -> None:
    x, w, a = f32(2, 5, 3), f32(5, 3), f32(2)
    ours = jax.vmap(lib.scale, (0, None, 0))(x, w, a)
    np.testing.assert_allclose(ours, x * w + a[:, None, None])
    # an operand with fewer leading axes than the others is mapped
    ours = jax.vmap(lib.scale, (None, 0, None))(f32(4, 1, 3), f32(2, 3), 1.0)
    np.testing.assert_allclose(ours, f32(1, 4, 1, 3) * f32(2, 1, 1, 3) + 1)


def test_vmap_of_what_is_not_mapped(lib: jaxc.Library) -> None:
    ours = jax.vmap(lambda _: lib.scale(f32(3), f32(3), 1.0))(jnp.arange(4))
    np.testing.assert_allclose(ours, np.tile(f32(3) ** 2 + 1, (4, 1)))


def test_vmap_of_inout(lib: jaxc.Library) -> None:
    x = f32(2, 3, 4)
    np.testing.assert_array_equal(jax.vmap(lib.twice, 1, 1)(x), 2 * x)
    np.testing.assert_array_equal(x, f32(2, 3, 4))


def test_a_transposed_operand_is_row_major_for_the_kernel(lib: jaxc.Library) -> None:
    for x in (f32(2, 3), f32(5, 2, 3)):
        y = jax.jit(lambda x: lib.transpose(jnp.swapaxes(x, -1, -2) + 0))(x)
        np.testing.assert_array_equal(y, x)


# ---- control flow ----


def test_jit_scan_cond_while_checkpoint_eval_shape(lib: jaxc.Library) -> None:
    x = f32(3)
    expected = x * x + 1

    def call(v: Any) -> Any:
        return lib.scale(v, x, 1.0)

    np.testing.assert_allclose(jax.jit(call)(x), expected)
    np.testing.assert_allclose(jax.jit(jax.vmap(call))(f32(2, 3)), f32(2, 3) * x + 1)
    np.testing.assert_allclose(jax.vmap(jax.jit(call))(f32(2, 3)), f32(2, 3) * x + 1)
    np.testing.assert_allclose(jax.checkpoint(call)(x), expected)
    np.testing.assert_allclose(jax.jit(jax.checkpoint(call))(x), expected)
    np.testing.assert_allclose(jax.lax.cond(True, call, lambda v: v, x), expected)
    _, ys = jax.lax.scan(lambda c, v: (c, call(v)), 0, f32(4, 3))
    np.testing.assert_allclose(ys, f32(4, 3) * x + 1)
    last = jax.lax.while_loop(lambda v: v[0] < 100, lib.twice, x)
    np.testing.assert_array_equal(last, x * 128)
    np.testing.assert_array_equal(jax.lax.fori_loop(0, 3, lambda _, v: lib.twice(v), x), x * 8)
    out = jax.eval_shape(lib.scale, f32(5, 3), x, 1.0)
    assert (out.shape, out.dtype) == ((5, 3), jnp.float32)
    with jax.disable_jit():
        np.testing.assert_allclose(call(x), expected)


def test_custom_derivatives_around_the_call(lib: jaxc.Library) -> None:
    @jax.custom_vjp
    def f(x: Any) -> Any:
        return lib.scale(x, x, 0.0)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * x * ct,))
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(f32(3)), 2 * f32(3))

    @jax.custom_jvp
    def g(x: Any) -> Any:
        return lib.scale(x, x, 0.0)

    g.defjvp(lambda primals, tangents: (g(*primals), 2 * primals[0] * tangents[0]))
    np.testing.assert_allclose(jax.jacfwd(g)(f32(3)), np.diag(2 * f32(3)))


def test_a_derivative_is_an_error_and_not_zero(lib: jaxc.Library) -> None:
    for transform in (jax.grad, jax.jacfwd):
        with pytest.raises(NotImplementedError, match=r"^scale has no derivative"):
            transform(lambda x: lib.scale(x, f32(3), 1.0).sum())(f32(3))


def test_the_call_stands_bare_in_the_caller_s_program(lib: jaxc.Library) -> None:
    text = str(jax.make_jaxpr(lib.scale)(f32(3), f32(3), jnp.float32(1)))
    assert "jaxc_call" in text
    assert "jit" not in text


def test_no_address_enters_a_program(lib: jaxc.Library) -> None:
    text = jax.jit(lib.scale).lower(f32(3), f32(3), 1.0).as_text()
    assert re.search(r'@"jaxc:transforms:scale:[0-9a-f]{16}"', text)
    assert not re.search("0x[0-9a-f]{4}", text)


# ---- shard_map with one device ----


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map_on_one_device(lib: jaxc.Library, axis_type: Any, check_vma: bool) -> None:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(axis_type,))
    x = jax.device_put(f32(2, 3), NamedSharding(mesh, P("i", None)))
    w = jax.device_put(f32(3), NamedSharding(mesh, P(None)))

    def body(x: Any, w: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            return lib.scale(carry, w, 1.0), None

        return jax.lax.scan(step, x, None, length=2)[0]

    run = jax.shard_map(
        body, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"), check_vma=check_vma
    )
    expected = ref(ref(f32(2, 3), f32(3), 1.0), f32(3), 1.0)
    np.testing.assert_allclose(run(x, w), expected)
    np.testing.assert_allclose(jax.jit(run)(x, w), expected)


# ---- effects ----


def test_effects_happen_in_order(lib: jaxc.Library) -> None:
    lib.read_log()
    lib.note(1.0)
    lib.note(2.0)
    assert lib.read_log() == 12


def test_effects_in_a_program_happen_in_order_and_once(lib: jaxc.Library) -> None:
    lib.read_log()

    @jax.jit
    def program(x: Any) -> Any:
        lib.note(1.0)
        lib.note(2.0)
        return x

    assert program(3.0) == 3
    jax.effects_barrier()
    assert lib.read_log() == 12
    assert "jaxc:transforms:note" in program.lower(3.0).compile().as_text()


def test_effects_in_loops_happen_in_order(lib: jaxc.Library) -> None:
    lib.read_log()

    def body(_: int, carry: Any) -> Any:
        lib.note(1.0)
        lib.note(2.0)
        return carry + 1

    assert jax.jit(lambda: jax.lax.fori_loop(0, 3, body, 0))() == 3
    assert lib.read_log() == 121212
    jax.jit(lambda: jax.lax.cond(True, lambda: lib.note(7.0), lambda: ()))()
    assert lib.read_log() == 7


def test_effects_of_rows_happen_in_order(lib: jaxc.Library) -> None:
    lib.read_log()
    jax.vmap(lib.note)(f32(4))
    assert lib.read_log() == 1234


def test_an_effect_may_also_give_results_in_place(lib: jaxc.Library) -> None:
    lib.read_log()
    y = jax.jit(lambda x: lib.slow(lib.slow(x + 0)))(f32(3))
    np.testing.assert_array_equal(y, f32(3) + 2)
    assert lib.read_log() == 2


def test_a_pure_call_whose_result_is_unused_is_dropped(lib: jaxc.Library) -> None:
    lib.read_calls()
    jax.jit(lambda x: (lib.counted(x), x)[1])(1.0)
    assert lib.read_calls() == 0
    jax.block_until_ready(jax.jit(lib.counted)(1.0))
    assert lib.read_calls() == 1


def test_an_unused_effect_is_not_dropped(lib: jaxc.Library) -> None:
    lib.read_log()
    x = f32(3)
    jax.jit(lambda x: (lib.slow(x), x)[1])(x)
    assert lib.read_log() == 1


def test_an_effect_in_flight_is_finished_when_the_process_exits(tmp_path: Path) -> None:
    code = r"""
import jaxc, jax
import jax.numpy as jnp
lib = jaxc.compile('''
#include <stdio.h>
#include <unistd.h>
#pragma jaxc effect static(path) scalar(y)
int append(const char *path, float x, float *y) {
  usleep(300000);
  FILE *file = fopen(path, "a");
  if (file == 0) return 1;
  fprintf(file, "%g\\n", x);
  *y = x;
  return fclose(file);
}
''')
jax.jit(lambda x: (lib.append("PATH", x), lib.append("PATH", x + 1), x)[2])(jnp.float32(1))
""".replace("PATH", str(tmp_path / "log"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "log").read_text() == "1\n2\n"
