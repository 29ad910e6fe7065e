"""The main job, step by step: a C file becomes a JAX function."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxc

ROOT = Path(__file__).resolve().parent.parent


def step(text: str) -> None:
    print(f"\n== {text}", flush=True)


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="jaxc-demo-"))
    try:
        return demo(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def demo(folder: Path) -> int:
    path = folder / "rms_norm.c"
    shutil.copy(ROOT / "examples" / "rms_norm.c", path)
    step("the C file")
    print(path.read_text().rstrip())

    step('rms_norm = jaxc.load("rms_norm.c").rms_norm')
    started = time.perf_counter()
    rms_norm = jaxc.load(path).rms_norm
    print(f"{rms_norm!r} in {1e3 * (time.perf_counter() - started):.0f} ms")

    step("against jax.numpy, under jit")
    x = jax.random.normal(jax.random.key(0), (256, 1024))

    def reference(x: jax.Array, eps: float) -> jax.Array:
        return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)

    y = jax.jit(rms_norm)(x, 1e-5)
    np.testing.assert_allclose(y, reference(x, 1e-5), rtol=1e-4, atol=1e-6)
    print(f"256 rows of 1024: largest difference {abs(y - reference(x, 1e-5)).max():.1e}")

    step("vmap over eps and over rows at once: one call, nothing copied")
    eps = jnp.array([1e-6, 1e-3, 1.0])
    nested = jax.vmap(jax.vmap(rms_norm, (0, None)), (None, 0))
    z = nested(x[:8], eps)
    np.testing.assert_allclose(z, jax.vmap(lambda e: reference(x[:8], e))(eps), rtol=1e-4)
    text = jax.jit(nested).lower(x[:8], eps).as_text()
    print(next(line.strip() for line in text.splitlines() if "jaxc:" in line))

    step("edit the file (eps is now added outside the root) and load it again")
    edited = path.read_text().replace(
        "sqrtf(s / (float)n + eps)", "(sqrtf(s / (float)n) + eps)"
    )
    assert edited != path.read_text()
    path.write_text(edited)
    started = time.perf_counter()
    outside = jaxc.load(path).rms_norm
    w = jax.block_until_ready(outside(x, 1.0))
    print(f"from the edited file to the first result in "
          f"{1e3 * (time.perf_counter() - started):.0f} ms")  # fmt: skip
    root = jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True))
    np.testing.assert_allclose(w, x / (root + 1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(rms_norm(x, 1e-5), y)
    print("the new function has the new formula, the old one still has the old")

    step("measured here, against the C++ handler of JAX's tutorial and jax.numpy")
    bench = ROOT / "bench" / "bench.py"
    return subprocess.run([sys.executable, str(bench), "--quick"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
