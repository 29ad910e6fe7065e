"""``jaxc.check``: try a C function and its derivatives before others rely on them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxc import host, shapes
from jaxc.derivative import statics_for
from jaxc.description import OPERANDS, RESULTS, Parameter, Role
from jaxc.function import Function
from jaxc.link import Kernel
from jaxc.overloads import OverloadedFunction
from jaxc.primitive import Statics


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One line of the table. ``problem`` is None when it passed."""

    what: str
    problem: str | None = None
    is_memory: bool = False


def check(
    function: Function | OverloadedFunction,
    *args: Any,
    rtol: float | None = None,
    seed: int = 0,
    **kwargs: Any,
) -> list[Outcome]:
    """Runs a function and its derivatives in many ways and compares.

    The function is called without XLA, with guard bytes around every array and results that
    are filled beforehand, to find reads and writes outside of an array and results that are
    not written; under jit, vmap, and scan; and its jvp and vjp are compared with finite
    differences in a random direction for each floating input, with each other, and under
    vmap and jit. A derivative kernel is a function too: ``jaxc.check(lib.f_bwd, ...)`` tries
    second order.

    Args:
      function: of several overloads, the one for these arguments is checked.
      args, kwargs: arguments of the function, at a point where it is smooth.
      rtol: relative tolerance of derivatives; by default 2e-2 in float32, 1e-5 in float64.
      seed: of the directions.

    Returns:
      The outcomes, in the order in which they are printed.

    Raises:
      AssertionError: with the first outcome that is wrong, after the table is printed.

    Example:
      >>> jaxc.check(rms_norm, x, 1e-5)
    """
    if isinstance(function, OverloadedFunction):
        function, args, kwargs = function.chosen(args, kwargs)  # type: ignore[assignment]
    if not isinstance(function, Function):
        raise TypeError(f"jaxc.check takes a jaxc function, got {function!r}")
    print(f"{function!r}")
    outcomes = []
    for outcome in _Checker(function, args, kwargs, rtol, seed).outcomes():
        outcomes.append(outcome)
        print(f"  {outcome.what:44}  {outcome.problem or 'ok'}", flush=True)
        if outcome.problem is not None and outcome.is_memory:
            break  # to go on would write over the memory of this process
    for outcome in outcomes:
        if outcome.problem is not None:
            raise AssertionError(f"{function.__name__}: {outcome.what}: {outcome.problem}")
    return outcomes


def _outcome(what: str, run: Callable[[], str | None], is_memory: bool = False) -> Outcome:
    try:
        return Outcome(what, run(), is_memory)
    except Exception as error:
        text = str(error).partition("\n")[0]
        return Outcome(what, f"{type(error).__name__}: {text}", is_memory)


def _differ(
    ours: Sequence[Any], theirs: Sequence[Any], rtol: float, must_be_finite: bool = False
) -> str | None:
    for a, b in zip(ours, theirs, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if must_be_finite and not np.isfinite(b).all():
            return f"the differences are {_short(b)} here; choose a point where f is smooth"
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0)
        if not np.allclose(a, b, rtol=rtol, atol=rtol * float(scale) + 1e-30, equal_nan=True):
            return f"got {_short(a)}, expected {_short(b)}"
    return None


def _short(array: np.ndarray[Any, Any]) -> str:
    return np.array2string(array, precision=6, threshold=6, separator=", ").replace("\n", "")


class _Checker:
    def __init__(
        self, function: Function, args: Any, kwargs: Any, rtol: float | None, seed: int
    ):
        self.f = function
        operands, self.statics = function._bind(args, kwargs)
        parameters = function.description.with_role(*OPERANDS)
        self.operands = [
            jnp.asarray(function._concrete(p, value), p.numpy_dtype)
            for p, value in zip(parameters, operands, strict=True)
        ]
        self.parameters = parameters
        widest = max((p.numpy_dtype.itemsize for p in self._floats()), default=4)
        # Threads that add floats to one place come in any order.
        self.same = 1e-4 if function.description.indices else 1e-6
        self.rtol = rtol if rtol is not None else (2e-2 if widest <= 4 else 1e-5)
        self.random = np.random.default_rng(seed)

    def _floats(self) -> list[Parameter]:
        return [p for p in self.parameters if p.is_differentiable]

    def run(self, *operands: Any) -> tuple[Any, ...]:
        out = self.f._trace(*operands, statics=self.statics)
        return out if isinstance(out, tuple) else (out,)

    def outcomes(self) -> Iterator[Outcome]:
        arrays = [np.asarray(o) for o in self.operands]
        # A serial C function may count its calls; a Python function is serial by its nature.
        is_python = bool(self.f.description.with_role(Role.DATA))
        if not self.f.description.effect and (is_python or not self.f.description.serial):
            yield from _memory(self.f, arrays, self.statics)
            yield from self._transforms()
        if self.f._rule_kind is None:
            yield from self._kernels()
        if self.f.rules or self.f._rule_kind is not None:
            yield from self._derivatives()

    # ---- values ----

    def _transforms(self) -> Iterator[Outcome]:
        expected = self.run(*self.operands)
        yield _outcome(
            "jit", lambda: _differ(jax.jit(self.run)(*self.operands), expected, self.same)
        )
        if not self.operands:
            return
        doubled = [jnp.stack([o, o]) for o in self.operands]

        def scanned() -> str | None:
            _, ys = jax.lax.scan(lambda c, xs: (c, self.run(*xs)), 0, tuple(doubled))
            return _differ([y[1] for y in ys], expected, self.same)

        yield _outcome("scan", scanned)
        for index, parameter in enumerate(self.parameters):
            yield _outcome(f"vmap over {parameter.name}", functools.partial(self._vmap, index))

    def _vmap(self, index: int) -> str | None:
        """Mapped over one operand: each row as if it were alone, whatever its neighbours."""
        value = np.asarray(self.operands[index])
        other = np.zeros_like(value)
        axes = [0 if i == index else None for i in range(len(self.operands))]
        expected = self.run(*self.operands)
        for stack in ([value, other, value], [other, value, value]):
            args = list(self.operands)
            args[index] = jnp.asarray(np.stack(stack))
            try:
                results = jax.vmap(self.run, axes)(*args)
                rows = [r[2] for r in jax.block_until_ready(results)]
            except jax.errors.JaxRuntimeError:
                return None  # the kernel refuses zeros, which says nothing of rows
            if problem := _differ(rows, expected, self.same):
                return f"a row depends on the rows before it: {problem}"
        return None

    # ---- derivatives ----

    def _derivatives(self) -> Iterator[Outcome]:
        rule = self.f._rule_kind
        has_jvp = rule == "jvp" or (rule is None and self.f.rules.jvp is not None)
        has_vjp = rule is not None or self.f.rules.bwd is not None
        if has_jvp:
            yield _outcome("jvp by all inputs together", self._jvp_together)
        for index, parameter in enumerate(self.parameters):
            if not self._may_move(parameter):
                continue
            name = parameter.name
            if has_jvp:
                yield _outcome(
                    f"jvp by {name}, finite differences", functools.partial(self._jvp, index)
                )
            if has_vjp:
                yield _outcome(
                    f"vjp by {name}, finite differences", functools.partial(self._vjp, index)
                )
                yield _outcome(
                    f"vjp by {name}, vmap and jit", functools.partial(self._vmap_vjp, index)
                )

    def _kinds(self) -> list[bool]:
        return [p.is_differentiable for p in self.f.description.with_role(*RESULTS)]

    @staticmethod
    def _may_move(parameter: Parameter) -> bool:
        return parameter.is_differentiable and not parameter.nondifferentiable

    def _only(self, index: int) -> Callable[[Any], list[Any]]:
        """The floating outputs as a function of one operand."""
        kinds = self._kinds()

        def only(value: Any) -> list[Any]:
            args = [value if i == index else o for i, o in enumerate(self.operands)]
            return [y for y, is_float in zip(self.run(*args), kinds, strict=True) if is_float]

        return only

    def _direction(self, like: Any) -> Any:
        dtype = np.dtype(like.dtype)
        values = self.random.normal(size=np.shape(like))
        if dtype.kind == "c":
            values = values + 1j * self.random.normal(size=np.shape(like))
        return jnp.asarray(values.astype(dtype))

    def _difference(self, index: int, direction: Any) -> list[Any]:
        """Central differences of the outputs, in a direction; error of second order."""
        value = self.operands[index]
        real = np.finfo(np.zeros((), value.dtype).real.dtype)
        step = float(real.eps) ** (1 / 3) * max(1.0, float(np.max(np.abs(value), initial=0)))
        only = self._only(index)
        ahead = only((value + step * direction).astype(value.dtype))
        behind = only((value - step * direction).astype(value.dtype))
        return [
            (np.asarray(a) - np.asarray(b)) / (2 * step)
            for a, b in zip(ahead, behind, strict=True)
        ]

    def _jvp(self, index: int) -> str | None:
        direction = self._direction(self.operands[index])
        _, tangents = jax.jvp(self._only(index), (self.operands[index],), (direction,))
        expected = self._difference(index, direction)
        return _differ(tangents, expected, self.rtol, must_be_finite=True)

    def _jvp_together(self) -> str | None:
        """All tangents at once are the sum of each alone, and change sign together."""
        names = [i for i, p in enumerate(self.parameters) if self._may_move(p)]
        points = [self.operands[i] for i in names]
        directions = [self._direction(o) for o in points]

        def only(*values: Any) -> list[Any]:
            args = list(self.operands)
            for i, value in zip(names, values, strict=True):
                args[i] = value
            kinds = self._kinds()
            return [y for y, moves in zip(self.run(*args), kinds, strict=True) if moves]

        def push(tangents: Sequence[Any]) -> list[Any]:
            return jax.jvp(only, points, tangents)[1]  # type: ignore[no-any-return]

        alone = [
            push([d if i == k else jnp.zeros_like(d) for k, d in enumerate(directions)])
            for i in range(len(names))
        ]
        total = [sum(np.asarray(part) for part in parts) for parts in zip(*alone, strict=True)]
        together = push(directions)
        back = [-np.asarray(t) for t in push([-d for d in directions])]
        return _differ(together, total, 1e-4) or _differ(back, together, 1e-4)

    def _vjp(self, index: int) -> str | None:
        """<ct, J v> from finite differences against <J^T ct, v>, for a few directions."""
        outs, back = jax.vjp(self._only(index), self.operands[index])
        for _ in range(3):
            direction = self._direction(self.operands[index])
            cts = [self._direction(y) for y in outs]
            (transposed,) = back(cts)
            moved = self._difference(index, direction)
            if not all(np.isfinite(m).all() for m in moved):
                return "the differences are not finite here; choose a smooth point"
            # JAX pairs complex numbers without conjugation, and only the real part counts
            # where real and complex meet.
            pairs = [
                np.real(np.sum(np.asarray(c) * m)) for c, m in zip(cts, moved, strict=True)
            ]
            ours = np.real(np.sum(np.asarray(transposed) * np.asarray(direction)))
            scale = sum(
                float(np.sum(np.abs(np.asarray(c) * m)))
                for c, m in zip(cts, moved, strict=True)
            )
            if not abs(ours - sum(pairs)) <= self.rtol * max(scale, abs(ours), 1e-30):
                return f"got {ours:.6g}, expected {sum(pairs):.6g}"
        return None

    def _vmap_vjp(self, index: int) -> str | None:
        value = self.operands[index]
        cts = [self._direction(y) for y in self._only(index)(value)]

        def pull(value: Any) -> Any:
            return jax.vjp(self._only(index), value)[1](cts)[0]

        rows = jax.jit(jax.vmap(pull))(jnp.stack([value, value]))
        return _differ([rows[0], rows[1]], [pull(value)] * 2, 1e-5)

    # ---- memory of the derivative kernels ----

    def _kernels(self) -> Iterator[Outcome]:
        rules = self.f.rules
        values = {
            ("input", p.name): np.asarray(o)
            for p, o in zip(self.parameters, self.operands, strict=True)
        }
        outs = self.run(*self.operands)
        results = self.f.description.with_role(*RESULTS)
        values |= {
            ("output", p.name): np.asarray(y) for p, y in zip(results, outs, strict=True)
        }
        dims = shapes.dimensions(
            self.f.description, [np.shape(o) for o in self.operands], dict(self.statics)
        )
        for kernel in (rules.fwd, rules.jvp, rules.bwd):
            if kernel is None or kernel.function == self.f:
                continue
            yield from self._kernel(kernel, values, dims)
        for name, problem in rules.unusable:
            yield Outcome(f"{name} is linked", f"it {problem}")

    def _kernel(self, kernel: Kernel, values: dict[Any, Any], dims: Any) -> Iterator[Outcome]:
        operands = []
        for key in kernel.operands:
            kind = {"tangent": "input", "cotangent": "output"}.get(key[0], key[0])
            value = values[kind, key[1]]
            operands.append(value if kind == key[0] else np.asarray(self._direction(value)))
        statics = statics_for(kernel.function, self.statics, dims)
        outcomes = list(_memory(kernel.function, operands, statics))
        yield from (
            dataclasses.replace(o, what=f"{kernel.function.__name__}: {o.what}")
            for o in outcomes
        )
        if kernel is self.f.rules.fwd:
            found, _ = host.call_guarded(kernel.function, operands, statics)
            results = dict(zip(kernel.results, found, strict=True))
            outputs = [key for key in kernel.results if key[0] == "output"]
            ours, theirs = [results[k] for k in outputs], [values[k] for k in outputs]
            name = kernel.function.__name__
            what = f"{name}: gives the outputs of {self.f.__name__}"
            yield _outcome(what, lambda: _differ(ours, theirs, 1e-5))
            values |= results


def _memory(function: Function, operands: Sequence[Any], statics: Statics) -> Iterator[Outcome]:
    """Calls without XLA: what lies around arrays and in results must not matter."""
    names = [p.name for p in function.description.with_role(*RESULTS)]
    # In one thread the points come in order: a sum of floats by atomics is the same again.
    runtime = host.Runtime(threads=None) if function.description.indices else None

    def unwritten(name: str) -> str:
        indices = function.description.indices
        if not indices:
            return ""
        ranges = ", ".join(f"{p.name} < {p.bounds[0].text}" for p in indices)
        return (
            f"; the points of the grid ({ranges}) do not write all of it, or read it before: "
            f"'#pragma jaxc zero({name})' clears it first"
        )

    def compare(poison: int = 0x41, guard: int = 0x41) -> str | None:
        first, _ = host.call_guarded(function, operands, statics, runtime=runtime)
        second, _ = host.call_guarded(
            function, operands, statics, poison=poison, guard=guard, runtime=runtime
        )
        for name, a, b in zip(names, first, second, strict=True):
            if a.tobytes() != b.tobytes():
                hint = unwritten(name) if poison != 0x41 else ""
                return f"result '{name}' differs: {_short(a)} and {_short(b)}{hint}"
        return None

    def written() -> str | None:
        _, around = host.call_guarded(function, operands, statics)
        return f"writes outside of {', '.join(around)}" if around else None

    # 0x41 and its followers repeated are large numbers in every floating type, 0xC1 and its
    # followers large negative ones, and 0xFF is a NaN.
    yield _outcome("every result is written", lambda: compare(poison=0xFF), True)
    yield _outcome("reads only its arrays", lambda: compare(guard=0xC1), True)
    yield _outcome("writes only its results", written, True)
