"""Calls from many threads, after everything in Python is gone, and at the process's end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxc

THREADS = 4
CALLS = 1000
TIMEOUT = 120  # seconds for a process that takes two

SOURCE = r"""
#include <jaxc/jaxc.h>
#include <time.h>

void affine(int n, const float x[n], float a, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = 2 * x[i] + a;
}

static void sleep_ms(int ms) {
  const struct timespec time = {0, ms * 1000000L};
  nanosleep(&time, NULL);
}
/* Also how many calls were running when this one began. */
static int running;
#pragma jaxc scalar(at_once)
void slow(int n, const float x[n], float y[n], int *at_once) {
  *at_once = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
  sleep_ms(20);
  for (int i = 0; i < n; i++) y[i] = 2 * x[i];
  __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
}

typedef struct { const float *x; float *y; int ms; } job;
static void piece(void *data, int64_t begin, int64_t end) {
  const job *j = data;
  if (j->ms) sleep_ms(j->ms);
  for (int64_t i = begin; i < end; i++) j->y[i] = 2 * j->x[i];
}
/* Twice through memory of the call, in the runtime's threads; negative numbers are refused. */
int looped(jaxc_context *context, int n, const float x[n], float y[n]) {
  void *memory;
  job first = {x, NULL, 0}, second = {NULL, y, 0};
  if (x[0] < 0) return jaxc_fail(context, JAXC_OUT_OF_RANGE, "x is %d", (int)x[0]);
  JAXC_TRY(jaxc_context_host_memory(context, sizeof(float) * (size_t)n, &memory));
  first.y = memory;
  second.x = memory;
  jaxc_parallel_for(context, n, 100, piece, &first);
  jaxc_parallel_for(context, n, 70, piece, &second);
  return 0;
}
int slow_loop(jaxc_context *context, int n, const float x[n], float y[n]) {
  job all = {x, y, 20};
  jaxc_parallel_for(context, n, 1, piece, &all);
  return 0;
}
"""


@pytest.fixture(scope="module")
def lib() -> Any:
    return jaxc.compile(SOURCE, name="threads")


def in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs work(0), work(1), ... at once; the first exception of them is raised here."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def check_affine(f: Callable[..., Any], i: int, calls: int = CALLS) -> None:
    """Calls with data that no other call of any thread has."""
    x = np.arange(64, dtype=np.float32) + 1000 * i
    for call in range(calls):
        y = np.asarray(f(x, np.float32(call)))
        assert (y == 2 * x + call).all(), (i, call)


# Many threads.


@pytest.mark.parametrize("transform", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_threads_that_call_one_function_get_their_own_results(
    lib: Any, transform: Callable[..., Any]
) -> None:
    f = transform(lib.affine)  # compiled when all threads are there
    in_threads(lambda i: check_affine(f, i))


def test_threads_that_call_one_executable_get_their_own_results(lib: Any) -> None:
    shapes = jax.ShapeDtypeStruct((64,), np.float32), jax.ShapeDtypeStruct((), np.float32)
    compiled = jax.jit(lib.affine).lower(*shapes).compile()
    in_threads(lambda i: check_affine(compiled, i))


def test_threads_that_trace_one_function_with_different_shapes(lib: Any) -> None:
    f = jax.jit(lib.affine)

    def work(i: int) -> None:
        for n in range(1, 11):
            x = np.full((n, i + 1), i, np.float32)
            assert (np.asarray(f(x, np.float32(n))) == 2 * i + n).all()

    in_threads(work)


def test_loops_in_the_runtime_s_threads_from_many_threads(lib: Any) -> None:
    f = jax.jit(lib.looped)

    def work(i: int) -> None:
        x = np.arange(1000, dtype=np.float32) + 5000 * i
        for call in range(CALLS):
            x[1] = call
            assert (np.asarray(f(x)) == 4 * x).all(), (i, call)

    in_threads(work)


def test_an_error_reaches_the_thread_that_made_the_call(lib: Any) -> None:
    f = jax.jit(lib.looped)

    def work(i: int) -> None:
        for call in range(1, 101):
            number = 1000 * i + call
            with pytest.raises(jax.errors.JaxRuntimeError, match=rf"x is -{number}\b"):
                f(np.full(8, -number, np.float32)).block_until_ready()
            assert (np.asarray(f(np.full(8, number, np.float32))) == 4 * number).all()

    in_threads(work)


# Without Python.


def test_a_jitted_function_outlives_the_library_s_object() -> None:
    names = {"lib": jaxc.compile(SOURCE, name="dropped_jit")}
    f = jax.jit(lambda x, a: names["lib"].affine(x, a))
    check_affine(f, 0, 1)
    gone = weakref.ref(names["lib"])
    names.clear()
    gc.collect()
    assert gone() is None
    check_affine(f, 1)


def test_an_executable_outlives_library_and_function() -> None:
    library = jaxc.compile(SOURCE, name="dropped_executable")
    f = jax.jit(library.affine)
    shapes = jax.ShapeDtypeStruct((64,), np.float32), jax.ShapeDtypeStruct((), np.float32)
    compiled = f.lower(*shapes).compile()
    gone = weakref.ref(library), weakref.ref(library.affine)
    del library, f
    jax.clear_caches()
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    check_affine(compiled, 0)
    in_threads(lambda i: check_affine(compiled, i))


# Processes of their own.


def start(program: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """A Python process that runs a program; SOURCE is its variable."""
    text = f"SOURCE = {SOURCE!r}\n{textwrap.dedent(program)}"
    return subprocess.Popen(
        [sys.executable, "-c", text],
        env={**os.environ, "JAX_PLATFORMS": "cpu", **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    """What it wrote, after an end without an error or a word on stderr."""
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    assert (process.returncode, err) == (0, "")
    return out


SHARDED = """
import threading
import jax, numpy as np, jaxc
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

lib = jaxc.compile(SOURCE, name="threads")
mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("i"))
example = jax.device_put(np.zeros((8, 16), np.float32), rows)
affine = jax.jit(lib.affine).lower(example, np.float32(0)).compile()
slow = jax.jit(lib.slow).lower(example).compile()
wrong, most = [], []

def work(i):
    barrier.wait()
    x = np.arange(128, dtype=np.float32).reshape(8, 16) + 1000 * i
    placed = jax.device_put(x, rows)
    for call in range(200):
        y = affine(placed, np.float32(call))
        if len(y.sharding.device_set) != 4 or not (np.asarray(y) == 2 * x + call).all():
            wrong.append((i, call))
    y, at_once = slow(placed)
    if not (np.asarray(y) == 2 * x).all():
        wrong.append((i, "slow"))
    most.append(np.asarray(at_once).max())
"""

EACH_ON_ITS_OWN = """
import threading
import jax, numpy as np, jaxc

lib = jaxc.compile(SOURCE, name="threads")
affine, slow = jax.jit(lib.affine), jax.jit(lib.slow)
wrong, most = [], []

def work(i):
    device = jax.devices()[i]
    x = np.arange(16, dtype=np.float32) + 1000 * i
    placed = jax.device_put(x, device)
    slow(placed)[0].block_until_ready()
    barrier.wait()
    for call in range(200):
        y = affine(placed, np.float32(call))
        if y.devices() != {device} or not (np.asarray(y) == 2 * x + call).all():
            wrong.append((i, call))
    barrier.wait()
    most.append(int(slow(placed)[1]))
"""

FOUR_THREADS = """
barrier = threading.Barrier(4)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(jax.devices()), wrong, len(most), max(most) > 1)
"""


@pytest.mark.parametrize(
    "program", [SHARDED, EACH_ON_ITS_OWN], ids=["sharded", "each on its own"]
)
def test_devices_run_one_program_at_once_from_many_threads(program: str) -> None:
    four = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    assert output(start(program + FOUR_THREADS, four)) == "4 [] 4 True\n"


@pytest.mark.parametrize("function", ["slow", "slow_loop"])
@pytest.mark.parametrize("where", ["main thread", "another thread"])
def test_a_process_ends_while_calls_run(function: str, where: str) -> None:
    """slow in each of four rows, slow_loop in pieces: both in the runtime's threads.

    A program that does little else is run by the thread that calls it, so this one has a sum.
    """
    program = f"""
    import threading
    import jax, numpy as np, jaxc
    lib = jaxc.compile(SOURCE, name="threads")
    f = jax.jit(lambda x: lib.{function}(x[:, :4] * x.sum()))
    x = np.ones((4, 2000), np.float32)
    jax.block_until_ready(f(x))
    def call():
        global results
        results = [jax.tree.leaves(f(x))[0] for _ in range(10)]
        print(results[-1].is_ready())
    if {where == "main thread"}:
        call()
    else:
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    """
    assert output(start(program)) == "False\n"


# Loading.


def check_cache(cache: Path) -> None:
    """One library is in it, and nothing that a load was busy with."""
    names = [entry.name for entry in cache.iterdir()]
    assert len([name for name in names if any((cache / name).glob("*.so"))]) == 1
    assert [name for name in names if name.startswith(".")] == []


def test_threads_that_load_one_file_build_one_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("JAXC_CACHE_DIR", str(cache))
    file = tmp_path / "loaded_by_threads.c"
    file.write_text(SOURCE)
    paths: list[Path] = []

    def work(i: int) -> None:
        library = jaxc.load(file)
        paths.append(library.path)
        check_affine(jax.jit(library.affine), i, 10)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_threads(work)
    assert len(paths) == THREADS
    assert len(set(paths)) == 1
    assert paths[0].is_relative_to(cache)
    check_cache(cache)


def test_processes_that_load_one_file_build_one_library(tmp_path: Path) -> None:
    file = tmp_path / "loaded_by_processes.c"
    file.write_text(SOURCE)
    cache = tmp_path / "cache"
    program = f"""
    import sys
    import jax, numpy as np, jaxc
    print("ready", flush=True)
    sys.stdin.readline()
    library = jaxc.load({str(file)!r})
    x = np.arange(64, dtype=np.float32)
    assert (np.asarray(jax.jit(library.affine)(x, 3.0)) == 2 * x + 3).all()
    print(library.path)
    """
    children = [start(program, {"JAXC_CACHE_DIR": str(cache)}) for _ in range(2)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    paths = [output(child).split() for child in children]
    assert paths[0] == paths[1]
    assert Path(paths[0][0]).is_relative_to(cache)
    check_cache(cache)
