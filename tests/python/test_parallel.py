"""Rows and loops in XLA's own threads: the same numbers, the first error, no deadlock."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

import jaxc

SOURCE = r"""
#include <jaxc/jaxc.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>

static uint32_t this_thread(void) { return (uint32_t)((uintptr_t)pthread_self() >> 8); }

float shifted(float x, float y) { return 2 * x + y; }

void rms_norm(int n, const float x[n], const float w[n], float eps, float y[n]) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  const float scale = 1 / sqrtf(sum / (float)n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * scale * w[i];
}
#pragma jaxc serial
void rms_norm_serial(int n, const float x[n], const float w[n], float eps, float y[n]) {
  rms_norm(n, x, w, eps, y);
}

static int edits(int m, int n, const int8_t *a, const int8_t *b, int *last) {
  for (int j = 0; j <= n; j++) last[j] = j;
  for (int i = 1; i <= m; i++) {
    int diagonal = last[0];
    last[0] = i;
    for (int j = 1; j <= n; j++) {
      const int replace = diagonal + (a[i - 1] != b[j - 1]);
      int least = last[j] < last[j - 1] ? last[j] + 1 : last[j - 1] + 1;
      if (replace < least) least = replace;
      diagonal = last[j];
      last[j] = least;
    }
  }
  return last[n];
}
/* Few rows, and much work in each. */
#pragma jaxc scratch(last) scalar(distance, thread)
void edit_distance(int m, int n, const int8_t a[m], const int8_t b[n], int last[n + 1],
                   int32_t *distance, uint32_t *thread) {
  *distance = edits(m, n, a, b, last);
  *thread = this_thread();
}
static int32_t order;
#pragma jaxc serial scratch(last) scalar(distance, thread, place)
void edit_distance_serial(int m, int n, const int8_t a[m], const int8_t b[n],
                          int last[n + 1], int32_t *distance, uint32_t *thread,
                          int32_t *place) {
  *distance = edits(m, n, a, b, last);
  *thread = this_thread();
  *place = order++;
}

/* The same without an array in a row. */
#pragma jaxc scalar(y, thread)
void slow_value(float x, float *y, uint32_t *thread) {
  volatile float value = x;
  for (int i = 0; i < 500000; i++) value = value + 1;
  *y = value;
  *thread = this_thread();
}

/* The smallest normal number over 4, which is no normal number. */
#pragma jaxc scalar(quarter, thread)
void subnormal(int n, const float x[n], float *quarter, uint32_t *thread) {
  volatile float value = x[0];
  for (int i = 0; i < 20000; i++) value = value * 1.0f;
  *quarter = value * 0.25f;
  *thread = this_thread();
}

int checked(int n, const int32_t x[n], int32_t y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  return x[0] < 0 ? 7 : 0;
}
const char *refused(int n, const int32_t x[n], int32_t y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  return x[0] == -1 ? "minus one" : x[0] < 0 ? "below minus one" : NULL;
}
int failed(jaxc_context *context, int n, const int32_t x[n], int32_t y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  if (x[0] < 0) return jaxc_fail(context, JAXC_OUT_OF_RANGE, "x is %d", (int)x[0]);
  return 0;
}

typedef struct { const float *x; float *y; } job;
static void piece(void *data, int64_t begin, int64_t end) {
  const job *j = data;
  for (int64_t i = begin; i < end; i++) j->y[i] = 2 * j->x[i];
}
/* A loop in the runtime's threads inside each row, twice. */
int fourfold(jaxc_context *context, int n, const float x[n], float y[n]) {
  void *memory;
  job first = {x, NULL}, second = {NULL, y};
  if (n % 2) return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "n is odd: %d", n);
  JAXC_TRY(jaxc_context_host_memory(context, sizeof(float) * (size_t)n, &memory));
  first.y = memory;
  second.x = memory;
  jaxc_parallel_for(context, n, 500, piece, &first);
  jaxc_parallel_for(context, n, 700, piece, &second);
  return 0;
}
"""

CORES = (
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)
several_cores = pytest.mark.skipif(CORES < 2, reason="needs two cores, or XLA has one thread")


@pytest.fixture(scope="module")
def lib() -> jaxc.Library:
    return jaxc.compile(SOURCE, name="parallel")


def normal(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def letters(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).integers(0, 4, shape), jnp.int8)


def rms_norm_reference(x: Any, w: Any, eps: float) -> Any:
    x = np.asarray(x, np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * np.asarray(w)


# ---- the same numbers ----


def test_a_million_values(lib: jaxc.Library) -> None:
    x, y = normal(1_000_000), normal(1_000_000, seed=1)
    expected = 2 * np.asarray(x) + np.asarray(y)
    np.testing.assert_allclose(lib.shifted(x, y), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        jax.jit(lib.shifted)(x, 3.0), 2 * np.asarray(x) + 3, rtol=1e-6, atol=1e-6
    )


def test_many_rows_are_bit_for_bit_those_of_one_thread(lib: jaxc.Library) -> None:
    x, w = normal(4096, 256), normal(256, seed=1)
    ours = lib.rms_norm(x, w, 1e-5)
    np.testing.assert_allclose(ours, rms_norm_reference(x, w, 1e-5), rtol=2e-5, atol=1e-5)
    for _ in range(5):
        np.testing.assert_array_equal(lib.rms_norm(x, w, 1e-5), ours)
    np.testing.assert_array_equal(lib.rms_norm_serial(x, w, 1e-5), ours)


def test_rows_over_several_mapped_axes(lib: jaxc.Library) -> None:
    x, w = normal(40, 256, 50), normal(30, 256, seed=1)
    mapped = jax.vmap(jax.vmap(lib.rms_norm, (1, None, None)), (0, None, None))
    both = jax.jit(jax.vmap(mapped, (None, 0, None)))(x, w, 1e-5)
    assert both.shape == (30, 40, 50, 256)
    rows = np.moveaxis(np.asarray(x), 1, -1)[None]
    expected = rms_norm_reference(rows, np.asarray(w)[:, None, None], 1e-5)
    np.testing.assert_allclose(both, expected, rtol=2e-5, atol=1e-5)


def test_rows_in_a_scan(lib: jaxc.Library) -> None:
    w = normal(128, seed=1)

    def step(carry: Any, _: Any) -> Any:
        carry = lib.rms_norm(carry, w, 1e-5)
        return carry, carry[0, 0]

    def plain(carry: Any, _: Any) -> Any:
        carry = lib.rms_norm_serial(carry, w, 1e-5)
        return carry, carry[0, 0]

    ours = jax.jit(lambda x: jax.lax.scan(step, x, length=20))(normal(1000, 128))
    serial = jax.jit(lambda x: jax.lax.scan(plain, x, length=20))(normal(1000, 128))
    jax.tree.map(np.testing.assert_array_equal, ours, serial)


SHARDS = r"""
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, PartitionSpec as P
import jaxc
lib = jaxc.compile(open(sys.argv[1]).read(), name="parallel")
assert jax.device_count() == 4
mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
x = jnp.asarray(np.random.default_rng(0).normal(size=(4096, 256)), jnp.float32)
w = jnp.linspace(1, 2, 256)
in_shards = jax.jit(jax.shard_map(
    lambda x, w: lib.rms_norm(lib.fourfold(x), w, 1e-5),
    mesh=mesh, in_specs=(P("d"), P()), out_specs=P("d")))
expected = lib.rms_norm_serial(4 * x, w, 1e-5)
for _ in range(10):
    np.testing.assert_array_equal(in_shards(x, w), expected)
print("done")
"""


def run_program(folder: Path, program: str, *arguments: str, **variables: str) -> None:
    """Runs it in a process of its own, on a CPU, with the path of SOURCE; it prints done."""
    (folder / "kernels.c").write_text(SOURCE)
    (folder / "program.py").write_text(program)
    command = [
        sys.executable,
        str(folder / "program.py"),
        str(folder / "kernels.c"),
        *arguments,
    ]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"} | variables
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env=environment
    )
    assert result.stdout.endswith("done\n"), result.stderr[-3000:]


def test_rows_in_the_shards_of_four_devices(tmp_path: Path) -> None:
    run_program(tmp_path, SHARDS, XLA_FLAGS="--xla_force_host_platform_device_count=4")


def test_calls_from_four_threads(lib: jaxc.Library) -> None:
    x, w = normal(2000, 256), normal(256, seed=1)
    expected = np.asarray(lib.rms_norm_serial(x, w, 1e-5))
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            if not np.array_equal(lib.rms_norm(x * 1, w, 1e-5), expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


# ---- threads ----


@several_cores
def test_a_few_rows_with_much_work_run_in_several_threads(lib: jaxc.Library) -> None:
    a, b = letters(32, 1000), letters(32, 1000, seed=1)
    expected = lib.edit_distance_serial(a, b)[0]
    seen: set[int] = set()
    for _ in range(5):  # another process may have the second core for a while
        distance, thread = lib.edit_distance(a, b)
        np.testing.assert_array_equal(distance, expected)
        seen = set(np.asarray(thread).tolist())
        if len(seen) > 1:
            break
    assert len(seen) > 1
    word, other = np.frombuffer(b"kitten", np.int8), np.frombuffer(b"sitting", np.int8)
    assert lib.edit_distance(word, other)[0] == 3


@several_cores
@pytest.mark.parametrize("count", [8, 60, 150])
def test_a_few_values_with_much_work_run_in_several_threads(
    lib: jaxc.Library, count: int
) -> None:
    seen: set[int] = set()
    for _ in range(5):
        y, thread = lib.slow_value(jnp.arange(count, dtype=jnp.float32))
        np.testing.assert_array_equal(y, np.arange(count) + 500_000)
        seen = set(np.asarray(thread).tolist())
        if len(seen) > 1:
            break
    assert len(seen) > 1


def test_a_serial_function_stays_in_one_thread_and_in_order(lib: jaxc.Library) -> None:
    a, b = letters(32, 1000), letters(32, 1000, seed=1)
    _, thread, place = lib.edit_distance_serial(a, b)
    assert len(set(np.asarray(thread).tolist())) == 1
    np.testing.assert_array_equal(np.diff(np.asarray(place)), 1)


@several_cores
def test_subnormal_numbers_are_the_same_in_every_thread(lib: jaxc.Library) -> None:
    x = jnp.full((1000, 1), np.finfo(np.float32).tiny)
    seen: set[int] = set()
    for _ in range(5):
        quarter, thread = lib.subnormal(x)
        # bits, not values: comparisons may take a subnormal number for zero
        bits = np.asarray(quarter).view(np.uint32)
        np.testing.assert_array_equal(bits, bits[0])
        seen |= set(np.asarray(thread).tolist())
    assert len(seen) > 1


# ---- errors ----


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("checked", r"checked: returned status 7 \(batch row 3000 of 50000\); 0 is success"),
        ("refused", r"refused: minus one \(batch row 3000 of 50000\)"),
        ("failed", r"OUT_OF_RANGE: .*failed: x is -1 \(batch row 3000 of 50000\)"),
    ],
)
def test_the_first_row_that_fails_is_told(lib: jaxc.Library, name: str, text: str) -> None:
    x = np.zeros((50_000, 3), np.int32)
    x[3000] = -1
    x[[3001, 7000, 20_000, 30_000, 49_999]] = -2
    function = jax.jit(getattr(lib, name))
    # Of what runs behind the caller's back, JAX 0.10 raises errors as ValueError.
    for _ in range(20):
        with pytest.raises((JaxRuntimeError, ValueError), match=text):
            jax.block_until_ready(function(x))
    np.testing.assert_array_equal(function(abs(x)), abs(x))


# ---- a context ----


@pytest.mark.parametrize("shape", [(2,), (100_000,), (50, 2000), (3, 4, 5000)])
def test_loops_inside_rows(lib: jaxc.Library, shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    np.testing.assert_array_equal(lib.fourfold(x), 4 * np.asarray(x))
    np.testing.assert_array_equal(jax.jit(lib.fourfold)(x), 4 * np.asarray(x))


def test_a_context_refuses_with_its_own_status(lib: jaxc.Library) -> None:
    with pytest.raises(JaxRuntimeError, match=r"INVALID_ARGUMENT: .*fourfold: n is odd: 3\n"):
        jax.block_until_ready(lib.fourfold(normal(3)))
    with pytest.raises(JaxRuntimeError, match=r"fourfold: n is odd: 3 \(batch row 0 of 2\)"):
        jax.block_until_ready(lib.fourfold(normal(2, 3)))


# ---- no deadlock ----

PROGRAM = r"""
import os, sys
cores = {int(core) for core in sys.argv[2].split(",")}
os.sched_setaffinity(0, cores)
import jax, jax.numpy as jnp, numpy as np, threading
import jaxc
lib = jaxc.compile(open(sys.argv[1]).read(), name="parallel")
x = jnp.asarray(np.random.default_rng(0).normal(size=(600, 200)), jnp.float32)
w = jnp.ones(200)

def many(x):  # calls that do not wait for each other: XLA's threads take them
    ys = [lib.rms_norm(x * k, w, 1e-5) for k in range(1, 13)]
    ys += [lib.fourfold(x + k) for k in range(12)]
    return sum(ys)

def plain(x):
    ys = [lib.rms_norm_serial(x * k, w, 1e-5) for k in range(1, 13)]
    ys += [4 * (x + k) for k in range(12)]
    return sum(ys)

run = jax.jit(many)
expected = np.asarray(jax.jit(plain)(x))
for _ in range(10):
    np.testing.assert_allclose(run(x), expected, rtol=1e-4, atol=1e-4)

def call_inside(value):  # a Python function that XLA's thread runs, and that calls again
    return np.asarray(lib.fourfold(np.asarray(value)), np.float32)

def with_callback(x):
    return jax.pure_callback(call_inside, jax.ShapeDtypeStruct(x.shape, x.dtype), lib.fourfold(x))

small = x[:20]
for _ in range(3):
    np.testing.assert_array_equal(jax.jit(with_callback)(small), 16 * np.asarray(small))

threads = [threading.Thread(target=lambda: [run(x).block_until_ready() for _ in range(5)]) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
@pytest.mark.parametrize("count", [1, 2])
def test_calls_in_xlas_own_threads_end_on_few_cores(tmp_path: Path, count: int) -> None:
    if count > CORES:
        pytest.skip(f"needs {count} cores")
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:count])
    run_program(tmp_path, PROGRAM, cores)
