# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with a layer in C, data-parallel over processes and devices.

    python train.py                               # starts 2 processes with 2 devices each
    python train.py --processes 1 --devices 1     # the same training on one device
    python train.py --cluster                     # is one process of a cluster's job

Without a launcher that JAX knows, start each process with where the first one listens, how
many there are and which one it is:

    JAX_COORDINATOR_ADDRESS=host:port JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0 python train.py

README.md has the rest.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxc

HERE = Path(__file__).resolve().parent

ROWS, INPUTS, HIDDEN = 64, 16, 32  # of the batch of all processes, and of each row
RATE = 0.1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--processes", type=int, default=2, help="to start on this machine")
    parser.add_argument("--devices", type=int, default=2, help="CPU devices of each process")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--cluster", action="store_true", help="let JAX ask the launcher")
    env = os.environ.get
    parser.add_argument("--coordinator", default=env("JAX_COORDINATOR_ADDRESS"))
    parser.add_argument("--num-processes", type=int, default=env("JAX_NUM_PROCESSES"))
    parser.add_argument("--process-id", type=int, default=env("JAX_PROCESS_ID"))
    given = parser.parse_args()
    place = (given.coordinator, given.num_processes, given.process_id)
    if not given.cluster and None in place and any(value is not None for value in place):
        parser.error("coordinator, number of processes and process id are given together")
    return given


# ---- the parent: starts the processes of this machine ----


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(processes: int, devices: int) -> int:
    """Runs this script once for each process; the first failure ends all of them."""
    address = f"127.0.0.1:{free_port()}"
    flags = (
        f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    )
    children = []
    try:
        for i in range(processes):
            env = {
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": flags.strip(),
                "JAX_COORDINATOR_ADDRESS": address,
                "JAX_NUM_PROCESSES": str(processes),
                "JAX_PROCESS_ID": str(i),
            }
            children.append(subprocess.Popen([sys.executable, *sys.argv], env=env))
        while any(child.poll() is None for child in children):
            if any(child.poll() for child in children):
                break
            time.sleep(0.05)
        return max(abs(child.poll() or 0) for child in children)
    finally:
        for child in children:
            child.kill()
            child.wait()


# ---- one of the processes ----


def connect(given: argparse.Namespace) -> None:
    """Makes the devices of all processes known to each, before the first use of a device."""
    if hasattr(jax.config, "jax_cpu_collectives_implementation"):
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    if given.cluster:
        jax.distributed.initialize()
    elif given.num_processes > 1:
        jax.distributed.initialize(given.coordinator, given.num_processes, given.process_id)


def loss(layer: Any, parameters: dict[str, Any], x: Any, target: Any) -> Any:
    """Mean over all rows of all processes; nothing in it knows of them."""
    hidden = layer(x @ parameters["in"], parameters["w"], parameters["b"])
    return ((hidden @ parameters["out"] - target) ** 2).mean()


def parameters_and_batch() -> tuple[dict[str, Any], Any, Any]:
    """The same in each process, by its seed; a real program reads its own rows only."""
    random = np.random.default_rng(0)
    normal = lambda *shape: random.standard_normal(shape).astype(np.float32)  # noqa: E731
    parameters = {
        "in": normal(INPUTS, HIDDEN) / np.float32(INPUTS**0.5),
        "w": np.ones(HIDDEN, np.float32),
        "b": np.zeros(HIDDEN, np.float32),
        "out": normal(HIDDEN) / np.float32(HIDDEN),
    }
    x = normal(ROWS, INPUTS)
    return parameters, x, np.sin(x.sum(1)).astype(np.float32)


def train(steps: int) -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("batch",), axis_types=(AxisType.Auto,))
    rows, whole = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
    parameters, *batch = parameters_and_batch()
    parameters = jax.tree.map(
        lambda p: jax.make_array_from_callback(p.shape, whole, lambda at: p[at]), parameters
    )
    x, target = (
        jax.make_array_from_callback(b.shape, rows, lambda at, b=b: b[at]) for b in batch
    )
    layer = jaxc.load(HERE / "layer.c").layer
    gradients = jax.value_and_grad(functools.partial(loss, layer))

    def step(parameters: dict[str, Any], x: Any, target: Any) -> tuple[dict[str, Any], Any]:
        value, gradient = gradients(parameters, x, target)
        return jax.tree.map(lambda p, g: p - RATE * g, parameters, gradient), value

    compiled = jax.jit(step, donate_argnums=0).lower(parameters, x, target).compile()
    losses = []
    for _ in range(steps):
        parameters, value = compiled(parameters, x, target)
        losses.append(float(value))
    if jax.process_index() != 0:
        return
    summed, gathers = collectives(compiled.as_text())
    print(f"processes: {jax.process_count()}, devices: {jax.device_count()}")
    print(f"rows of one device: {x.addressable_shards[0].data.shape[0]} of {ROWS}")
    print(f"arrays summed over the devices: {summed}, gathers: {gathers}")
    print("losses:", *(f"{value:.7g}" for value in losses))


def collectives(text: str) -> tuple[int, int]:
    """Arrays that the all-reduces of a program sum, and all-gathers in it."""
    operands = re.findall(r" all-reduce(?:-start)?\(([^)]*)\)", text)
    gathers = re.findall(r" all-gather(?:-start)?\(", text)
    return sum(len(names.split(",")) for names in operands), len(gathers)


if __name__ == "__main__":
    given = arguments()
    if not given.cluster and given.coordinator is None:
        sys.exit(start(given.processes, given.devices))
    connect(given)
    train(given.steps)
