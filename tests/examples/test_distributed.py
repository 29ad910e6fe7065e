"""examples/distributed as a user and as a launcher runs it: losses equal those of one device."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxc

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "distributed"
FLAGS = (
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wno-unknown-pragmas",
    "-Werror",
)
STEPS = 10
TIMEOUT = 120  # seconds for processes that take four
TWO_DEVICES = "--xla_force_host_platform_device_count=2"

needs_collectives = pytest.mark.skipif(
    not hasattr(jax.config, "jax_cpu_collectives_implementation"),
    reason="this JAX has no collectives between processes on CPUs",
)


class Run:
    """train.py in a process group of its own, so that nothing of it outlives a test."""

    def __init__(self, *arguments: str, env: Mapping[str, str] = {}):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_"))}
        self.process = subprocess.Popen(
            [sys.executable, str(FOLDER / "train.py"), f"--steps={STEPS}", *arguments],
            env={**kept, "JAX_PLATFORMS": "cpu", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self) -> tuple[int, str, str]:
        """Exit status, output and errors."""
        try:
            out, err = self.process.communicate(timeout=TIMEOUT)
        finally:
            self.kill()
        if "Multiprocess computations aren't implemented on the CPU" in err:
            pytest.skip("this runtime has no collectives between processes on CPUs")
        return self.process.returncode, out, err

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # when all of them have ended
            os.killpg(self.process.pid, signal.SIGKILL)

    def output(self) -> str:
        code, out, err = self.end()
        assert code == 0, err
        return out


def value(output: str, name: str) -> str:
    found = re.search(rf"^{name}: (.*)$", output, re.MULTILINE)
    assert found is not None, output
    return found[1]


def losses(output: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([float(word) for word in value(output, "losses").split()])


@pytest.fixture(scope="module")
def alone() -> str:
    """The output of the training in one process with one device."""
    return Run("--processes=1", "--devices=1").output()


@pytest.fixture(scope="module")
def together() -> str:
    return Run().output()


def test_training_on_one_device_learns(alone: str) -> None:
    found = losses(alone)
    assert len(found) == STEPS
    assert np.all(np.diff(found) < 0)
    assert found[-1] < 0.7 * found[0]
    assert value(alone, "processes") == "1, devices: 1"
    assert value(alone, "arrays summed over the devices") == "0, gathers: 0"


@needs_collectives
def test_two_processes_with_two_devices_train_as_one_device(together: str, alone: str) -> None:
    assert value(together, "processes") == "2, devices: 4"
    assert value(together, "rows of one device") == "16 of 64"
    np.testing.assert_allclose(losses(together), losses(alone), rtol=2e-6)


@needs_collectives
def test_only_the_gradients_and_the_loss_cross_devices(together: str) -> None:
    assert value(together, "arrays summed over the devices") == "5, gathers: 0"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def launched(commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> list[str]:
    """Outputs of processes that were started apart."""
    runs = [Run(*arguments, env=env) for arguments, env in commands]
    try:
        ends = [run.end() for run in runs]
    finally:
        for run in runs:
            run.kill()
    assert [code for code, _, _ in ends] == [0] * len(runs), ends
    return [out for _, out, _ in ends]


def by_arguments(i: int, port: int) -> tuple[Sequence[str], Mapping[str, str]]:
    place = (f"--coordinator=127.0.0.1:{port}", "--num-processes=2", f"--process-id={i}")
    return place, {"XLA_FLAGS": TWO_DEVICES}


def by_slurm(i: int, port: int) -> tuple[Sequence[str], Mapping[str, str]]:
    """What srun tells its processes."""
    return ["--cluster"], {
        "XLA_FLAGS": TWO_DEVICES,
        "JAX_COORDINATOR_PORT": str(port),
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": "2",
        "SLURM_PROCID": str(i),
        "SLURM_LOCALID": str(i),
    }


@needs_collectives
@pytest.mark.parametrize("place", [by_arguments, by_slurm])
def test_a_launcher_s_processes_train_as_one_device(place: object, alone: str) -> None:
    assert callable(place)
    port = free_port()
    first, second = launched([place(0, port), place(1, port)])
    assert value(first, "processes") == "2, devices: 4"
    np.testing.assert_allclose(losses(first), losses(alone), rtol=2e-6)
    assert "losses" not in second


def test_a_place_that_is_half_given_is_refused() -> None:
    code, _, err = Run("--coordinator=127.0.0.1:1").end()
    assert code == 2
    assert "coordinator, number of processes and process id are given together" in err


def test_a_process_that_fails_ends_the_training(tmp_path: Path) -> None:
    """Without a compiler, and with nothing in the cache."""
    env = {"CC": "no-such-compiler", "JAXC_CACHE_DIR": str(tmp_path)}
    code, out, err = Run(env=env).end()
    assert code != 0
    assert "no-such-compiler" in err
    assert "losses" not in out


# docs/scaling.md, which measures what the example relies on.


def test_programs_do_not_grow_with_the_devices() -> None:
    """By the page's own program: name | program | part | collectives | time."""
    text = (FOLDER.parents[1] / "docs" / "scaling.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = {}
    for line in done.stdout.splitlines():
        name, *cells = line.split("|")
        rows[name.strip()] = [cell.strip() for cell in cells]
    assert len(rows) == 8
    for count in (1, 2, 4, 64):
        assert rows[f"forward, {count}"][2] == ""
        sums = "all-reduce all-reduce" if count > 1 else ""
        assert rows[f"gradient, {count}"][2] == sums
    for function in ("forward", "gradient"):
        two, many = (rows[f"{function}, {count}"] for count in (2, 64))
        for before, after in zip(two[:2], many[:2], strict=True):
            assert int(after) < 1.05 * int(before)


# The layer alone.


@pytest.fixture
def operands() -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(1)
    return tuple(random.standard_normal(s).astype("float32") for s in ((5, 8), 8, 8))


def test_the_layer_s_gradient_is_that_of_jax_numpy(operands: tuple[np.ndarray, ...]) -> None:
    layer = jaxc.load(FOLDER / "layer.c").layer

    def reference(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
        r = 1 / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)
        return jnp.tanh(w * x * r + b)

    ours, theirs = (
        jax.value_and_grad(lambda *args, f=f: jnp.sum(f(*args) ** 3), (0, 1, 2))(*operands)
        for f in (layer, reference)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-5), ours, theirs)


def test_the_layer_s_gradient_agrees_with_finite_differences(
    operands: tuple[np.ndarray, ...],
) -> None:
    x, w, b = operands
    jaxc.check(jaxc.load(FOLDER / "layer.c").layer, x[0], w, b)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_layer_compiles_without_warnings(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    output = ["-c", str(FOLDER / "layer.c"), "-o", str(tmp_path / "layer.o")]
    done = subprocess.run(
        [compiler, *FLAGS, "-O2", *output], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
