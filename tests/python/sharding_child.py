"""Calls on four CPU devices, for test_sharding.py: prints one JSON object."""

from __future__ import annotations

import itertools
import json
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxc

lib = jaxc.compile("""
#pragma jaxc static(k, word)
#pragma jaxc scalar(sum)
int affine(int n, int k, const char *word, const float x[n], const float w[n], float y[n],
           float *sum) {
  *sum = 0;
  for (int i = 0; i < n; i++) *sum += y[i] = x[i] + k * w[i];
  return word[0] != 'a';
}
void times(int n, const float x[n], const float w[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] * w[i];
}
void times_bwd(int n, const float x[n], const float w[n], const float ct_y[n], float ct_x[n],
               float ct_w[n]) {
  for (int i = 0; i < n; i++) { ct_x[i] = ct_y[i] * w[i]; ct_w[i] = ct_y[i] * x[i]; }
}
void times_jvp(int n, const float x[n], const float w[n], const float d_x[n],
               const float d_w[n], float d_y[n]) {
  for (int i = 0; i < n; i++) d_y[i] = d_x[i] * w[i] + d_w[i] * x[i];
}
float product(float a, float b) { return a * b; }
#pragma jaxc effect
void noted(int n, const float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = 2 * x[i];
}
#pragma jaxc inout(x)
void increment(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }
""")

random = np.random.default_rng(0)


def array(*shape: int) -> Any:
    return jnp.asarray(random.normal(size=shape).astype(np.float32))


def affine(x: Any, w: Any) -> Any:
    return lib.affine(3, "a", x, w)


def affine_ref(x: Any, w: Any) -> Any:
    return x + 3 * w, (x + 3 * w).sum(-1)


def collectives(text: str) -> list[str]:
    kinds = ("all-gather", "all-to-all", "all-reduce", "collective-permute", "reduce-scatter")
    return [kind for kind in kinds if f" {kind}" in text]


def run(
    f: Callable[..., Any], ref: Callable[..., Any], args: Sequence[Any], specs: Any, mesh: Any
) -> dict[str, Any]:
    placed = [
        jax.device_put(a, NamedSharding(mesh, s)) for a, s in zip(args, specs, strict=True)
    ]
    compiled = jax.jit(f).lower(*placed).compile()
    results = jax.tree.leaves(compiled(*placed))
    expected = jax.tree.leaves(ref(*args))
    return {
        "right": all(
            np.allclose(a, b, 1e-4, 1e-4) for a, b in zip(results, expected, strict=True)
        ),
        "collectives": collectives(compiled.as_text()),
        "specs": [str(r.sharding.spec) for r in results],
    }


def automatic() -> dict[str, Any]:
    one = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    two = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    out = {}

    def case(name: str, *rest: Any) -> None:
        out[name] = run(*rest)

    pair = (array(8, 16), array(16))
    case("batch", affine, affine_ref, pair, (P("x"), P()), one)
    case("core", affine, affine_ref, pair, (P(None, "x"), P("x")), one)
    case("both", affine, affine_ref, pair, (P("x"), P("x")), one)
    case("none", affine, affine_ref, pair, (P(), P()), one)

    def uneven(x: Any, w: Any) -> Any:  # 6 rows on 4 devices: the compiler pads
        x = jax.lax.with_sharding_constraint(x, NamedSharding(one, P("x")))
        return affine(x, w)

    case("uneven", uneven, affine_ref, (array(6, 16), array(16)), (P(), P()), one)
    eps = (array(8, 16), array())
    times_eps = lambda x, e: lib.times(x, jnp.broadcast_to(e, (16,)))  # noqa: E731
    case("rank 0", times_eps, lambda x, e: x * e, eps, (P("x"), P()), one)
    case(
        "values", lib.product, jnp.multiply, (array(8, 4), array(4)), (P("x", "y"), P("y")), two
    )
    case("inout", lib.increment, lambda x: x + 1, (array(8, 4),), (P("x"),), one)
    mapped, mapped_ref = jax.vmap(affine, (1, 0)), jax.vmap(affine_ref, (1, 0))
    rows = (array(5, 8, 16), array(8, 16))
    case("vmap", mapped, mapped_ref, rows, (P(None, "x"), P("x")), one)
    named = jax.vmap(affine, (0, None), spmd_axis_name="x")
    case("spmd_axis_name", named, affine_ref, (array(8, 5, 16), array(16)), (P("x"), P()), one)
    grad = jax.grad(lambda x, w: jnp.sin(lib.times(x, w)).sum())
    grad_ref = jax.grad(lambda x, w: jnp.sin(x * w).sum())
    case("grad", grad, grad_ref, pair, (P("x"), P()), one)
    both = jax.grad(lambda x, w: jnp.sin(lib.times(x, w)).sum(), 1)
    both_ref = jax.grad(lambda x, w: jnp.sin(x * w).sum(), 1)
    case("grad of w", both, both_ref, pair, (P("x"), P()), one)
    jvp = lambda x, w: jax.jvp(lib.times, (x, w), (x, w))[1]  # noqa: E731
    case("jvp", jvp, lambda x, w: 2 * x * w, pair, (P("x"), P()), one)
    # Every mix of shardings of two operands that broadcast, on a mesh of two axes.
    big, small, thin = array(4, 8, 16), array(8, 16), array(4, 1, 16)
    left = (P("x"), P("x", "y"), P(None, "y"), P("y", "x"), P("x", None, "y"), P(("x", "y")))
    for a, b in itertools.product(left, (P(), P("x"), P("y"), P(None, "x"))):
        case(f"mix {a} {b}", affine, affine_ref, (big, small), (a, b), two)
    for a, b in itertools.product((P("x"), P("x", None, "y")), (P(), P("x", "y"), P("y"))):
        case(f"thin {a} {b}", affine, affine_ref, (thin, big), (a, b), two)
    return out


def explicit() -> dict[str, Any]:
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    out: dict[str, Any] = {}

    def message(*args: Any) -> str:
        try:
            lib.times(*args)
        except ValueError as error:
            return str(error)
        return "no error"

    with jax.set_mesh(mesh):
        x = jax.device_put(array(4, 8, 16), P("x", "y"))
        w = jax.device_put(array(16), P())
        out["call"] = str(jax.typeof(lib.times(x, w)))
        compiled = jax.jit(lib.times).lower(x, w).compile()
        out["collectives"] = collectives(compiled.as_text())
        out["right"] = bool(np.allclose(compiled(x, w), np.asarray(x) * np.asarray(w)))
        gx, gw = jax.jit(jax.grad(lambda x, w: lib.times(x, w).sum(), (0, 1)))(x, w)
        out["grad"] = [str(jax.typeof(gx)), str(jax.typeof(gw))]
        out["grad is right"] = bool(np.allclose(gw, np.asarray(x).sum((0, 1)), 1e-4, 1e-4))
        out["jvp"] = str(jax.typeof(jax.jvp(lib.times, (x, w), (x, w))[1]))
        out["vmap"] = str(jax.typeof(jax.vmap(lib.times, (1, None), 1)(x, w)))
        out["core"] = message(jax.device_put(array(4, 8, 16), P(None, None, "x")), w)
        out["conflict"] = message(x, jax.device_put(array(8, 16), P("x")))
        twice = jax.device_put(array(4, 1, 16), P("x"))
        out["twice"] = message(twice, jax.device_put(array(8, 16), P("x")))
    return out


def program() -> dict[str, Any]:
    """What the program of several devices contains."""
    one = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    args = [
        jax.device_put(a, NamedSharding(one, s))
        for a, s in ((array(8, 16), P("x")), (array(16), P()))
    ]
    text = jax.jit(affine).lower(*args).as_text()
    alone = jax.jit(affine).lower(array(8, 16), array(16)).as_text()
    return {"text": text, "alone": alone}


def manual() -> dict[str, Any]:
    """Inside shard_map: over all axes of a mesh, and over one while the compiler has the
    other."""
    out: dict[str, Any] = {}
    one = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    two = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    args = (array(8, 4, 16), array(16))
    for name, mesh, axes, specs in (
        ("all", one, {"x"}, (P("x"),)),
        ("some", two, {"x"}, (P("x"), P("x", "y"), P(None, "y"), P())),
    ):
        f = jax.shard_map(
            lib.times, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), axis_names=axes
        )
        for spec in specs:
            case = run(f, lambda x, w: x * w, args, (spec, P()), mesh)
            out[f"{name} {spec}"] = case
    return out


def effects() -> dict[str, Any]:
    one = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    x = jax.device_put(array(8, 16), NamedSharding(one, P("x")))
    out: dict[str, Any] = {}
    try:
        jax.jit(lib.noted).lower(x)
    except NotImplementedError as error:
        out["automatic"] = str(error)
    f = jax.jit(jax.shard_map(lib.noted, mesh=one, in_specs=P("x"), out_specs=P("x")))
    out["manual"] = bool(np.allclose(f(x), 2 * np.asarray(x)))
    return out


def gathers() -> dict[str, Any]:
    """A core axis that is sharded: gathered with a warning, or refused."""
    one = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    x = jax.device_put(array(8, 16), NamedSharding(one, P(None, "x")))
    out: dict[str, Any] = {}

    def call(f: Any) -> str:
        try:
            jax.jit(lambda x: f(x, jnp.ones(16)))(x).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            return str(error)
        return "done"

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out["allowed"] = call(lib.times)
    out["warnings"] = [f"{w.category.__name__}: {w.message}" for w in caught]
    lib.times.forbid_gather = True
    out["forbidden for it"] = call(lib.times)
    out["another"] = call(lambda x, w: lib.affine(3, "a", x, w)[0])
    lib.times.forbid_gather = False
    jaxc.config.forbid_gather = True
    out["forbidden"] = call(lib.times)
    jaxc.config.forbid_gather = False
    return out


print(
    json.dumps(
        {
            "manual": manual(),
            "effects": effects(),
            "gathers": gathers(),
            "automatic": automatic(),
            "explicit": explicit(),
            "program": program(),
        }
    )
)
