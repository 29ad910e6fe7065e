"""Programs leave the process: exported, refused with a reason, and bundled."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxc
from jaxc.compiler import find_compiler

pytest.importorskip("flatbuffers", reason="jax.export needs it to serialize")

SOURCE = """
#include <complex.h>
#pragma jaxc static(z)
int shift(float complex z, int n, const float x[n], float y[n + 1]) {
  for (int i = 0; i < n; i++) y[i] = x[i] + crealf(z) + cimagf(z);
  y[n] = 0;
  return 0;
}
void times(int n, const float x[n], const float w[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] * w[i];
}
void times_bwd(int n, const float x[n], const float w[n], const float ct_y[n], float ct_x[n],
               float ct_w[n]) {
  for (int i = 0; i < n; i++) { ct_x[i] = ct_y[i] * w[i]; ct_w[i] = ct_y[i] * x[i]; }
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "moved.c"
    path.write_text(SOURCE)
    return path


def child(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def step(lib: jaxc.Library) -> Any:
    def f(x: Any, w: Any) -> Any:
        return lib.shift(1 + 2j, jax.grad(lambda x: lib.times(x, w).sum())(x)).sum()

    return jax.jit(f)


def test_another_process_with_the_library_runs_it(source: Path, tmp_path: Path) -> None:
    lib = jaxc.load(source)
    x, w = jnp.ones((3, 4)), jnp.arange(4.0)
    (tmp_path / "program").write_bytes(jaxc.export(step(lib), x, w).serialize())
    done = child(
        """
import sys, jax.numpy as jnp, jaxc
jaxc.load(sys.argv[1])
program = jaxc.deserialize(open(sys.argv[2], "rb").read())
print(float(program.call(jnp.ones((3, 4)), jnp.arange(4.0))))
""",
        str(source),
        str(tmp_path / "program"),
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == float(step(lib)(x, w)) == 54


def test_a_process_without_the_library_is_told_what_to_load(
    source: Path, tmp_path: Path
) -> None:
    lib = jaxc.load(source)
    data = jaxc.export(jax.jit(lib.times), jnp.ones(4), jnp.ones(4)).serialize()
    (tmp_path / "program").write_bytes(data)
    script = """
import sys, jaxc
if len(sys.argv) > 2:
    jaxc.load(sys.argv[2])
try:
    jaxc.deserialize(open(sys.argv[1], "rb").read())
except ValueError as error:
    print(error)
"""
    done = child(script, str(tmp_path / "program"))
    digest = lib.times.targets["cpu"].rpartition(":")[2]
    assert done.stdout == (
        f"the program calls 'times' of library 'moved' (build {digest}); load it first: "
        "jaxc.load('moved.c'), or the library that was built of it\n"
    )
    source.write_text(SOURCE.replace("x[i] * w[i]", "w[i] * x[i]"))
    done = child(script, str(tmp_path / "program"), str(source))
    assert f"(build {digest}); this process has it from another build (" in done.stdout
    assert done.stdout.endswith("): source, flags or jaxc's version differ\n")


def test_only_our_targets_are_allowed(source: Path) -> None:
    lib = jaxc.load(source)
    jax.ffi.register_ffi_target("foreign", lib.times.handlers["cpu"], platform="cpu")

    def f(x: Any) -> Any:
        return jax.ffi.ffi_call("foreign", jax.typeof(x))(lib.times(x, x), x)

    with pytest.raises(ValueError, match="foreign"):
        jaxc.export(jax.jit(f), jnp.ones(3))


@pytest.mark.parametrize(
    ("sizes", "shapes"),
    [("b, n", (2, 5)), ("b, 4", (7, 4)), ("b, c, n", (2, 3, 4)), ("2*b, n", (6, 3))],
)
def test_sizes_may_be_symbolic(source: Path, sizes: str, shapes: tuple[int, ...]) -> None:
    lib = jaxc.load(source)
    spec = jax.ShapeDtypeStruct(jax.export.symbolic_shape(sizes), jnp.float32)
    program = jaxc.export(jax.jit(lambda x: lib.shift(1j, lib.times(x, x))), spec)
    x = jnp.arange(float(np.prod(shapes))).reshape(shapes)
    expected = jnp.pad(x * x + 1, [(0, 0)] * (len(shapes) - 1) + [(0, 1)])
    np.testing.assert_array_equal(jaxc.deserialize(program.serialize()).call(x), expected)


def test_a_bundle_needs_neither_source_nor_compiler(source: Path, tmp_path: Path) -> None:
    lib = jaxc.load(source)
    x, w = jnp.ones((3, 4)), jnp.arange(4.0)
    place = tmp_path / "step.jaxc"
    sha256 = jaxc.bundle(place, jaxc.export(step(lib), x, w))
    source.unlink()
    done = child(
        """
import os, sys, tempfile
os.environ.update(PATH="", CC="nothing", JAXC_CACHE_DIR=tempfile.mkdtemp())
import jax.numpy as jnp, jaxc
program = jaxc.load_bundle(sys.argv[1], sha256=sys.argv[2])
print(float(program.call(jnp.ones((3, 4)), jnp.arange(4.0))))
""",
        str(place),
        sha256,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 54


def test_a_bundle_is_not_run_unasked(source: Path, tmp_path: Path) -> None:
    lib = jaxc.load(source)
    place = tmp_path / "times.jaxc"
    sha256 = jaxc.bundle(place, jaxc.export(jax.jit(lib.times), jnp.ones(4), jnp.ones(4)))
    assert jaxc.load_bundle(place, trust=True).call(jnp.ones(4), jnp.ones(4)).shape == (4,)
    with pytest.raises(ValueError, match="contains code that would run in this process; give"):
        jaxc.load_bundle(place)
    with pytest.raises(ValueError, match=rf"has SHA-256 {sha256}, expected {'0' * 64}"):
        jaxc.load_bundle(place, sha256="0" * 64)


def test_a_damaged_bundle_is_refused(source: Path, tmp_path: Path) -> None:
    lib = jaxc.load(source)
    place, other = tmp_path / "times.jaxc", tmp_path / "other.jaxc"
    jaxc.bundle(place, jaxc.export(jax.jit(lib.times), jnp.ones(4), jnp.ones(4)))

    def changed(**new: Any) -> Path:
        with zipfile.ZipFile(place) as old, zipfile.ZipFile(other, "w") as archive:
            for name in old.namelist():
                content = old.read(name)
                if name == "manifest.json" and new:
                    content = json.dumps({**json.loads(content), **new}).encode()
                elif name == "program" and not new:
                    content = content[:-1] + b"?"
                archive.writestr(name, content)
        return other

    with pytest.raises(ValueError, match="'program' in it is damaged"):
        jaxc.load_bundle(changed(), trust=True)
    with pytest.raises(ValueError, match="was made for plan9 vax, this is "):
        jaxc.load_bundle(changed(system="plan9 vax"), trust=True)
    with pytest.raises(ValueError, match="has format 9, expected 1"):
        jaxc.load_bundle(changed(format=9), trust=True)
    other.write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match="is no bundle of jaxc, or damaged"):
        jaxc.load_bundle(other, trust=True)


def test_a_program_for_several_devices_is_exported(source: Path, tmp_path: Path) -> None:
    """Its partitioner is known by the target's name, so another process divides it too."""
    script = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, jaxc
from jax.sharding import NamedSharding, PartitionSpec as P
lib = jaxc.load(sys.argv[1])
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
x = jax.device_put(jnp.ones((8, 4)), NamedSharding(mesh, P("x")))
w = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, P()))
if sys.argv[3] == "write":
    f = jax.jit(lib.times, out_shardings=NamedSharding(mesh, P("x")))
    open(sys.argv[2], "wb").write(jaxc.export(f, x, w).serialize())
else:
    program = jaxc.deserialize(open(sys.argv[2], "rb").read())
    call = jax.jit(program.call)
    text = call.lower(x, w).compile().as_text()
    print(float(call(x, w).sum()), "all-" in text)
"""
    for what in ("write", "read"):
        done = child(script, str(source), str(tmp_path / "program"), what)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "48.0 False\n"


def test_the_compilation_cache_hits_in_another_process(source: Path, tmp_path: Path) -> None:
    script = """
import sys, jax, jax.numpy as jnp, jaxc
jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
hits = []
jax.monitoring.register_event_listener(
    lambda event, **kwargs: hits.append(event) if event.endswith("cache_hits") else None
)
lib = jaxc.load(sys.argv[1])
jax.jit(lambda x: lib.times(x, x))(jnp.ones(4)).block_until_ready()
print(len(hits) > 0)
"""
    found = [child(script, str(source), str(tmp_path / "cache")).stdout for _ in range(2)]
    assert found == ["False\n", "True\n"]


#: A library as one for two platforms will be: here the handler for CUDA does nothing.
TWO_PLATFORMS = r"""
#include <jaxc/batch.h>
static int rows(const long long *dims, char *const *data, const long long *strides,
                long long count, jaxc_fault *fault) {
  (void)dims;
  (void)fault;
  for (long long i = 0; i < count; i++) {
    *(float *)(data[0] + i * strides[0]) = 2 * *(const float *)(data[1] + i * strides[1]);
  }
  return 0;
}
static const jaxc_parameter parameters[] = {
    {"return", "float", JAXC_ROLE_OUTPUT, JAXC_F32, 0, -1, NULL, 0},
    {"x", "float x", JAXC_ROLE_INPUT, JAXC_F32, 0, -1, NULL, 0}};
static jaxc_abi_error *on_cpu(jaxc_abi_call_frame *frame);
static jaxc_abi_error *on_cuda(jaxc_abi_call_frame *frame) {
  (void)jaxc_call_answer_metadata(frame, 0);
  return NULL;
}
static const jaxc_entry entries[] = {{"cpu", on_cpu}, {"cuda", on_cuda}};
static const jaxc_function f = {
    .struct_size = sizeof(jaxc_function), .name = "twice", .prototype = "float twice(float x)",
    .file = "twice.cu", .parameter_count = 2, .parameters = parameters, .argument_count = 1,
    .result_count = 1, .rows = rows, .entry_count = 2, .entries = entries};
static jaxc_abi_error *on_cpu(jaxc_abi_call_frame *frame) { return jaxc_batch_handle(frame, &f); }
static const jaxc_function *const functions[] = {&f};
extern const jaxc_library jaxc_library_table;
const jaxc_library jaxc_library_table = {
    .struct_size = sizeof(jaxc_library), .abi_version = JAXC_LIBRARY_ABI, .function_count = 1,
    .jaxc_version = "0", .name = "two", .hash = "1", .functions = functions};
"""


def test_one_function_is_lowered_for_several_platforms(tmp_path: Path) -> None:
    source, out = tmp_path / "two.c", tmp_path / "two.so"
    source.write_text(TWO_PLATFORMS)
    flags = ["-shared", "-fPIC", f"-I{jaxc.include_dir()}", str(source), "-o", str(out)]
    find_compiler().run(flags, what="compiling two.c")
    twice = jaxc.load(out).twice
    x = jnp.arange(6.0).reshape(2, 3)
    program = jaxc.export(jax.jit(twice), x, platforms=("cpu", "cuda"))
    assert program.platforms == ("cpu", "cuda")
    assert program.mlir_module().count("custom_call @") == 2
    again = jaxc.deserialize(program.serialize())
    np.testing.assert_array_equal(again.call(x), 2 * x)
    gpu = jax.sharding.AbstractDevice("gpu", 1, "cuda")
    explicit = (jax.sharding.AxisType.Explicit,)
    mesh = jax.sharding.AbstractMesh((4,), ("x",), explicit, abstract_device=gpu)
    with jax.sharding.use_abstract_mesh(mesh):
        spec = jax.ShapeDtypeStruct((8, 4), jnp.float32)
        text = jax.jit(twice).lower(spec).as_text()
    assert '@"jaxc:two:twice:1"' in text
    assert "sdy.sharding_rule" in text


def test_a_platform_without_an_entry_is_refused_at_lowering(source: Path) -> None:
    lib = jaxc.load(source)
    with pytest.raises(
        NotImplementedError,
        match="times: no entry for platform 'cuda'; the library has entries for: cpu",
    ):
        jaxc.export(jax.jit(lib.times), jnp.ones(3), jnp.ones(3), platforms=("cpu", "cuda"))
