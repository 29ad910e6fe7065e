"""The sections of JAX's tutorial, in its order, with the handlers of rms_norm.c."""

from __future__ import annotations

import ctypes
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from steps import (
    XS,
    SkipError,
    X,
    close,
    collectives,
    compiled,
    error_of,
    like,
    rms_norm_ref,
    section,
)

import jaxc

try:
    from jax.experimental.hijax import HiPrim
except ImportError:
    try:  # its name before JAX 0.11.2
        from jax.experimental.hijax import VJPHiPrimitive as HiPrim
    except ImportError:
        HiPrim = None


def need_primitives() -> None:
    # An earlier form of the class calls vjp_fwd without a first argument.
    if HiPrim is None or "nzs_in" not in inspect.signature(HiPrim.vjp_fwd).parameters:
        raise SkipError(f"JAX {jax.__version__} has no HiPrim with these rules")


# ---- a simple example ----


@section("a simple example")
def simple() -> str:
    mean_square = jnp.mean(rms_norm_ref(X, 0.0) ** 2, axis=-1)
    close(mean_square, jnp.ones(8))
    return "rms_norm_ref in jax.numpy: rows of mean square 1"


# ---- backend code ----


@section("backend code")
def backend() -> str:
    library, seconds = compiled("rms_norm")
    symbols = ctypes.CDLL(str(library))
    for name in ("RmsNorm", "RmsNormFwd", "RmsNormBwd"):
        assert getattr(symbols, name) is not None
    return f"three handlers in C, one cc command, {seconds:.2f} s"


# ---- registering ----

TARGETS = {
    "rms_norm": "RmsNorm",
    "rms_norm_fwd": "RmsNormFwd",
    "rms_norm_bwd": "RmsNormBwd",
}


@functools.cache
def register() -> None:
    library, _ = compiled("rms_norm")
    for target, symbol in TARGETS.items():
        jaxc.register(target, library, symbol=symbol)


@section("registering")
def registering() -> str:
    register()
    library, _ = compiled("rms_norm")
    jaxc.register("rms_norm", library, symbol="RmsNorm")  # again: nothing happens
    refused = error_of(
        lambda: jaxc.register("rms_norm", library, symbol="RmsNormFwd"), says="another handler"
    )
    assert "rms_norm" in refused
    error_of(
        lambda: jaxc.register("no_such", library, symbol="Missing"),
        says="handlers in it: RmsNorm, RmsNormBwd, RmsNormFwd",
    )
    # A handler is an ordinary one: JAX's own function and a capsule do as well.
    symbols = ctypes.CDLL(str(library))
    capsule = jax.ffi.pycapsule(symbols.RmsNorm)
    jax.ffi.register_ffi_target("rms_norm_capsule", capsule, platform="cpu")
    call = jax.ffi.ffi_call("rms_norm_capsule", jax.ShapeDtypeStruct(X.shape, X.dtype))
    close(call(X, eps=np.float32(1e-5)), rms_norm_ref(X))
    return "jaxc.register of three handlers; a wrong name is told what there is"


# ---- frontend code ----


def call_rms_norm(x: Any, eps: float = 1e-5) -> Any:
    """eps is a float32 attribute: a NumPy number, known when the program is made."""
    return jax.ffi.ffi_call("rms_norm", like(x))(x, eps=np.float32(eps))


@section("frontend code")
def frontend() -> str:
    register()
    close(call_rms_norm(X), rms_norm_ref(X))
    close(jax.jit(call_rms_norm)(XS), rms_norm_ref(XS))
    message = error_of(lambda: call_rms_norm(X.astype("float16")), says="float16")
    assert "expected float32" in message
    return "jax.ffi.ffi_call, eager and under jit; a wrong dtype is refused by the handler"


# ---- transformations ----


def call_fwd(x: Any, eps: Any) -> Any:
    r = jax.ShapeDtypeStruct(x.shape[:-1], x.dtype)
    return jax.ffi.ffi_call("rms_norm_fwd", (like(x), r))(x, eps=eps)


def call_bwd(r: Any, x: Any, ct: Any) -> Any:
    return jax.ffi.ffi_call("rms_norm_bwd", like(x))(r, x, ct)


def primitive_of(fwd: Callable[..., Any], bwd: Callable[..., Any]) -> Callable[..., Any]:
    """rms_norm as a primitive whose derivatives are made of `fwd` and `bwd`."""
    need_primitives()
    register()

    class RMSNorm(HiPrim):
        def __init__(self, aval: Any, eps: float) -> None:
            self.in_avals = (aval,)
            self.out_aval = aval
            self.params = {"eps": np.float32(eps)}
            super().__init__()

        def expand(self, x: Any) -> Any:
            return call_rms_norm(x, self.eps)

        def vjp_fwd(self, _nonzero: Any, x: Any) -> Any:
            y, r = fwd(x, self.eps)
            return y, (r, x)

        def vjp_bwd_retval(self, residuals: Any, ct: Any) -> Any:
            return (bwd(*residuals, ct),)

        def jvp(self, primals: Any, tangents: Any) -> Any:
            y, r = fwd(*primals, self.eps)
            return y, bwd(r, *primals, *tangents)  # the matrix is symmetric

        def batch(self, _axis: Any, args: Any, dims: Any) -> Any:
            return rms_norm(jnp.moveaxis(args[0], dims[0], 0), self.eps), 0

    def rms_norm(x: Any, eps: float = 1e-5) -> Any:
        return RMSNorm(jax.typeof(x), eps)(x)

    return rms_norm


@section("transformations")
def transformations() -> str:
    register()
    error_of(lambda: jax.grad(lambda x: call_rms_norm(x).sum())(X), says="differentiated")
    rms_norm = primitive_of(call_fwd, call_bwd)
    close(rms_norm(X), rms_norm_ref(X))
    close(jax.jit(rms_norm)(X), rms_norm_ref(X))
    ct = jnp.cos(X)
    close(jax.vjp(rms_norm, X)[1](ct), jax.vjp(rms_norm_ref, X)[1](ct), 1e-4, 1e-5)
    ours, theirs = (jax.jvp(f, (X,), (ct,)) for f in (rms_norm, rms_norm_ref))
    close(ours, theirs, 1e-4, 1e-5)
    close(jax.vmap(rms_norm)(XS), rms_norm_ref(XS))
    close(jax.vmap(rms_norm, 1, 1)(XS), rms_norm_ref(XS))
    return f"{HiPrim.__name__} with vjp, jvp and vmap"


# ---- composing transformations ----


def batchable() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """fwd and bwd as primitives of their own, which vmap can map."""
    need_primitives()

    class RMSNormFwd(HiPrim):
        def __init__(self, aval: Any, eps: Any) -> None:
            self.in_avals = (aval,)
            self.out_aval = (aval, aval.update(shape=aval.shape[:-1]))
            self.params = {"eps": eps}
            super().__init__()

        def expand(self, x: Any) -> Any:
            return call_fwd(x, self.eps)

        def batch(self, _axis: Any, args: Any, dims: Any) -> Any:
            return fwd(jnp.moveaxis(args[0], dims[0], 0), self.eps), (0, 0)

    class RMSNormBwd(HiPrim):
        def __init__(self, *avals: Any) -> None:
            self.in_avals = avals
            self.out_aval = avals[1]
            self.params = {}
            super().__init__()

        def expand(self, r: Any, x: Any, ct: Any) -> Any:
            return call_bwd(r, x, ct)

        def batch(self, axis: Any, args: Any, dims: Any) -> Any:
            def to_front(array: Any, dim: int | None) -> Any:
                if dim is None:  # not mapped: the same for each
                    return jnp.broadcast_to(array, (axis.size, *array.shape))
                return jnp.moveaxis(array, dim, 0)

            return bwd(*map(to_front, args, dims)), 0

    def fwd(x: Any, eps: Any) -> Any:
        return RMSNormFwd(jax.typeof(x), eps)(x)

    def bwd(*args: Any) -> Any:
        return RMSNormBwd(*map(jax.typeof, args))(*args)

    return fwd, bwd


@section("composing transformations")
def composing() -> str:
    def grad_of(f: Any) -> Any:
        return jax.vmap(jax.grad(lambda x: jnp.sum(f(x) ** 3)))

    def jvp_of(f: Any) -> Any:
        return jax.vmap(lambda x, t: jax.jvp(f, (x,), (t,)))

    alone = primitive_of(call_fwd, call_bwd)
    error_of(lambda: grad_of(alone)(XS), says="vmap", kind=NotImplementedError)
    rms_norm = primitive_of(*batchable())
    close(grad_of(rms_norm)(XS), grad_of(rms_norm_ref)(XS), 1e-4, 1e-5)
    tangents = jnp.sin(3 * XS)
    close(jvp_of(rms_norm)(XS, tangents), jvp_of(rms_norm_ref)(XS, tangents), 1e-4, 1e-5)
    # A shared x and mapped cotangents: bwd is given arrays that are not mapped.
    jacobian = jax.jacrev(rms_norm)(X[0])
    close(jacobian, jax.jacrev(rms_norm_ref)(X[0]), 1e-4, 1e-5)
    return "vmap(grad), vmap(jvp), jacrev"


# ---- sharding ----


def sharded_primitive(target: Callable[[], str]) -> Callable[..., Any]:
    """rms_norm whose `expand` calls the target for each device's part of x."""
    need_primitives()
    register()

    class RMSNorm(HiPrim):
        def __init__(self, aval: Any, eps: float) -> None:
            self.in_avals = (aval,)
            self.out_aval = aval
            self.params = {"eps": np.float32(eps)}
            super().__init__()

        def expand(self, x: Any) -> Any:
            def part(x: Any) -> Any:
                return jax.ffi.ffi_call(target(), jax.typeof(x))(x, eps=self.eps)

            return jax.shard_map(part, out_specs=self.out_aval.sharding.spec)(x)

    return lambda x, eps=1e-5: RMSNorm(jax.typeof(x), eps)(x)


@section("sharding")
def sharding() -> str:
    assert len(jax.devices()) == 4, "four CPU devices by XLA_FLAGS"
    rms_norm = sharded_primitive(lambda: "rms_norm")
    # Left to XLA, which cannot look into the call, the input is gathered.
    auto = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
    rows = jax.sharding.NamedSharding(auto, jax.sharding.PartitionSpec("x"))
    gathering = collectives(call_rms_norm, jax.device_put(X, rows))
    assert "all-gather" in gathering, gathering
    with jax.set_mesh(jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Explicit,))):
        x = jax.device_put(X, jax.P("x"))
        y = jax.jit(rms_norm)(x)
        close(y, rms_norm_ref(X))
        close(rms_norm(x), rms_norm_ref(X))
        assert jax.typeof(y).sharding.spec == jax.P("x", None)
        assert {shard.data.shape for shard in y.addressable_shards} == {(2, 4)}
        assert collectives(rms_norm, x) == set()
    return "shard_map in expand: 4 devices with 2 rows each, no collective (all-gather without)"


# ---- GPUs, several platforms ----


@section("several platforms")
def platforms() -> str:
    if not hasattr(jax.sharding, "AbstractDevice"):
        raise SkipError(f"JAX {jax.__version__} has no AbstractDevice")

    def target() -> str:
        platform = jax.sharding.get_abstract_mesh().abstract_device.platform
        return {"cpu": "rms_norm", "cuda": "rms_norm_cuda"}[platform]

    rms_norm = sharded_primitive(target)
    explicit = (jax.sharding.AxisType.Explicit,)
    with jax.set_mesh(jax.make_mesh((4,), ("x",), explicit)):
        close(rms_norm(X), rms_norm_ref(X))
    gpu = jax.sharding.AbstractDevice("gpu", 1, "cuda")
    mesh = jax.sharding.AbstractMesh((4,), ("x",), explicit, abstract_device=gpu)
    with jax.sharding.use_abstract_mesh(mesh):
        text = jax.jit(rms_norm).lower(X).as_text()
    assert "@rms_norm_cuda" in text, text
    assert "@rms_norm(" not in text, text
    # A handler for a GPU asks for its stream; a CPU has none, and the message says so.
    library, _ = compiled("rms_norm")
    jaxc.register("tutorial_stream", library, symbol="StreamOnly")
    message = error_of(
        lambda: jax.ffi.ffi_call("tutorial_stream", like(X))(X), says="StreamOnly: stream: "
    )
    return f"lowered for an abstract CUDA mesh; on a CPU: {message.split(': ', 1)[1]}"


# ---- the deprecated vmap_method ----


@section("vmap_method")
def vmap_methods() -> str:
    register()
    methods = (
        "sequential",
        "sequential_unrolled",
        "expand_dims",
        "broadcast_all",
        "legacy_vectorized",
    )
    shown = []
    for method in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                call = functools.partial(
                    jax.ffi.ffi_call, "rms_norm", like(X), vmap_method=method
                )()
                y = jax.vmap(lambda x, call=call: call(x, eps=np.float32(1e-5)))(XS)
            except (TypeError, ValueError) as error:
                if "vmap_method" not in str(error):
                    raise
                continue
        close(y, rms_norm_ref(XS))
        shown.append(method)
    if not shown:
        raise SkipError(f"JAX {jax.__version__} has no vmap_method")
    return ", ".join(shown)
