"""Derivatives of ufuncs that are known, in terms of other ufuncs.

Formulas are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov), whose
numbers stand beside them; where there is no number, the function's definition in SciPy's
documentation is differentiated. An input without one cannot be differentiated by: that is an
error, not a zero.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

if TYPE_CHECKING:
    from jaxc.function import Function

#: (inputs and then outputs) -> partial derivative; a tuple of one for each output.
Partial = Callable[..., Any]
#: A partial derivative by each input, None where there is none.
Rule = Sequence[Partial | None]

# Numbers of Python, not of NumPy, so that formulas stay in float32 where their inputs are.
_SQRT_PI = math.sqrt(math.pi)
_SQRT_2PI = math.sqrt(2 * math.pi)
_DEGREE = math.pi / 180


class _Special:
    """scipy.special's ufuncs, adopted when a formula names them."""

    def __getattr__(self, name: str) -> Any:
        from jaxc.ufuncs import ufunc

        return ufunc(getattr(importlib.import_module("scipy.special"), name))


_s = _Special()


# ---- at the edges ----


def _away_from(x: Any, place: float, value: Any, limit: Any) -> Any:
    return jnp.where(x == place, limit, value)


def _near_zero(u: Any, near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
    """near(u) for small u, where far(u) would cancel; each sees only what it is good for."""
    small = jnp.abs(u) < 0.1
    return jnp.where(small, near(jnp.where(small, u, 0)), far(jnp.where(small, 1, u)))


def _real_only(name: str, partial: Partial) -> Partial:
    """A derivative that there is along the real axis alone."""

    def real(*values: Any) -> Any:
        if any(jnp.iscomplexobj(value) for value in values):
            raise NotImplementedError(
                f"{name}: no derivative by a complex argument is known; "
                f"jaxc.ufunc(...).defjvp gives one"
            )
        return partial(*values)

    return real


# ---- Bessel functions ----


def _half_difference(name: str, sign: float = 1, minus: float = 1) -> Partial:
    """sign (f(v - 1, z) - minus f(v + 1, z)) / 2."""

    def partial(v: Any, z: Any, out: Any) -> Any:
        f = getattr(_s, name)
        return sign * (f(v - 1, z) - minus * f(v + 1, z)) / 2

    return partial


def _of_whole(partial: Partial) -> Partial:
    """Of a function that takes the whole part of its first argument."""
    return lambda n, *rest: partial(jnp.trunc(n).astype(n.dtype), *rest)


def _struve(name: str, sign: float) -> Partial:
    """The recurrence relations of 11.4(v): of H with sign 1, of L with -1."""

    def partial(v: Any, z: Any, out: Any) -> Any:
        f = getattr(_s, name)
        inhomogeneous = (z / 2) ** v * _s.rgamma(v + 1.5) / _SQRT_PI
        return (f(v - 1, z) - sign * f(v + 1, z) + inhomogeneous) / 2

    return partial


def _of_squares(x: Any, sign: float, far: Callable[[Any], Any]) -> Any:
    """(1 - J0(x)) / x, or (I0(x) - 1) / x with sign 1, by 10.2.2 and 10.25.2 near zero."""

    def near(x: Any) -> Any:
        q, total = sign * x * x / 4, 0.0
        for k in (6, 5, 4, 3, 2, 1):
            total = total * q + 1 / math.factorial(k) ** 2
        return x / 4 * total

    return _near_zero(x, near, far)


def _airye(x: Any, ai: Any, aip: Any, bi: Any, bip: Any) -> Any:
    """9.2.1 and the scales exp(2/3 x^(3/2)) and its inverse, which are 1 where x < 0."""
    root = jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)
    return aip + root * ai, x * ai + root * aip, bip - root * bi, x * bi - root * bip


def _sinc(x: Any, sign: float, sine: Callable[[Any], Any]) -> Any:
    """sin(x) / x, or sinh(x) / x with sign 1; near zero by 10.16.9 and 10.39.9."""
    return _near_zero(x, lambda x: _s.hyp0f1(1.5, sign * x * x / 4), lambda x: sine(x) / x)


def _modified_fresnel(x: Any, k: Any, i: complex) -> tuple[Any, Any]:
    """The integral of exp(i t^2) from x on, and the same times exp(-i (x^2 + pi/4)) / sqrt(pi),
    which is k; i or -i."""
    turn = (1 - i) / math.sqrt(2)  # exp(-i pi / 4)
    return -jnp.exp(i * x * x), -turn / _SQRT_PI - 2 * i * x * k


# ---- gamma and beta functions ----


def _trigamma(x: Any) -> Any:
    """The derivative of psi; 5.15.6 reflects negative x."""
    reflected = jnp.where(x > 0, x, 1 - x)
    positive = jax.lax.polygamma(jnp.ones_like(x), reflected)
    return jnp.where(x > 0, positive, (jnp.pi / jnp.sin(jnp.pi * x)) ** 2 - positive)


def _is_pole(x: Any) -> Any:
    """Whether gamma has a pole: at 0, -1, -2, ..."""
    real = jnp.real(x)
    return (real <= 0) & (real == jnp.floor(real)) & (jnp.imag(x) == 0)


def _rgamma_slope(x: Any) -> Any:
    """That of 1/gamma, 5.2.2; 5.5.3 reflects, so that nothing happens at gamma's poles."""
    left = jnp.real(x) < 0.5
    mirror = 1 - jnp.where(left, x, 0)
    reflected = _s.gamma(mirror) * (
        jnp.cos(math.pi * x) - _s.psi(mirror) * jnp.sin(math.pi * x) / math.pi
    )
    right = jnp.where(left, 1, x)
    return jnp.where(left, reflected, -_s.psi(right) * _s.rgamma(right))


def _poch_by_z(z: Any, m: Any, out: Any) -> Any:
    top, bottom = _is_pole(z + m), _is_pole(z)
    both = top & bottom  # 5.5.4 reflects both of psi's arguments, with the same cotangent
    upper = _s.psi(jnp.where(both, 1 - z - m, z + m))
    lower = _s.psi(jnp.where(both, 1 - z, jnp.where(bottom, 1, z)))
    at_pole = _s.gamma(z + m) * (upper * _s.rgamma(z) + _rgamma_slope(z))
    return jnp.where(bottom & ~top, at_pole, out * (upper - lower))


def _binom(by_n: bool) -> Partial:
    """gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)), whose zeros are poles of a gamma."""

    def partial(n: Any, k: Any, out: Any) -> Any:
        rest, first = n - k + 1, k + 1
        zero = _is_pole(rest) | _is_pole(first)
        lower = _s.psi(jnp.where(zero, 1, rest))
        whole, a, b = _s.gamma(n + 1), _s.rgamma(rest), _s.rgamma(first)
        if by_n:
            at_zero = whole * b * (_s.psi(n + 1) * a + _rgamma_slope(rest))
            return jnp.where(zero, at_zero, out * (_s.psi(n + 1) - lower))
        at_zero = whole * (_rgamma_slope(first) * a - _rgamma_slope(rest) * b)
        return jnp.where(zero, at_zero, out * (lower - _s.psi(jnp.where(zero, 1, first))))

    return partial


def _gammainc_by_a(a: Any, x: Any) -> Any:
    return jax.lax.igamma_grad_a(*jnp.broadcast_arrays(a, x))


def _times_log(a: Any, x: Any) -> Any:
    """a log(x), and 0 where a is."""
    return jnp.where(a == 0, 0, a * jnp.log(jnp.where(a == 0, 1, x)))


def _times_log1p(a: Any, x: Any) -> Any:
    return jnp.where(a == 0, 0, a * jnp.log1p(jnp.where(a == 0, 0, x)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return jnp.exp(_times_log(a - 1, x) + _times_log1p(b - 1, -x) - _s.betaln(a, b))


def _gamma_density(a: Any, x: Any) -> Any:
    return jnp.exp(_times_log(a - 1, x) - x - _s.gammaln(a))


# ---- distributions ----


def _real(k: Any, like: Any) -> Any:
    """The whole number below a count, in the dtype of a probability."""
    return jnp.floor(k).astype(like.dtype)


def _binomial(k: Any, n: Any, p: Any) -> Any:
    """Minus the derivative of the distribution function by p: that of 8.17.5."""
    k, n = _real(k, p), _real(n, p)
    inside = k < n
    return jnp.where(
        inside, _beta_density(k + 1, jnp.where(inside, n - k, 1), p), 0 * p
    )  # all of the distribution is below k = n


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    return _beta_density(_real(n, p), _real(k, p) + 1, p)


def _poisson(k: Any, m: Any) -> Any:
    return _gamma_density(_real(k, m) + 1, m)


def _student(df: Any, t: Any) -> Any:
    df = jnp.minimum(df, 1e30)  # the normal distribution to all digits
    log = -(df + 1) / 2 * jnp.log1p(t * t / df) - _s.betaln(df / 2, 0.5)
    return jnp.exp(log) / jnp.sqrt(df)


def _fisher(dfn: Any, dfd: Any, x: Any) -> Any:
    """The density of betainc(dfn / 2, dfd / 2, dfn x / (dfd + dfn x))."""
    a, b, odds = dfn / 2, dfd / 2, dfn * x / dfd
    log = _times_log(a - 1, odds) - (a + b) * jnp.log1p(odds) - _s.betaln(a, b)
    return jnp.exp(log) * dfn / dfd


def _noncentral(x: Any, df: Any, nc: Any) -> Any:
    """The density of the noncentral chi-square distribution; Johnson, Kotz and Balakrishnan,
    Continuous Univariate Distributions 2, 29.4, by 0F1 where a power of nc would overflow."""
    small = x * nc < 1
    x1, nc1 = jnp.where(small, 1, x), jnp.where(small, 1, nc)
    product = jnp.where(small, x * nc, 0)
    near = _gamma_density(df / 2, x / 2) * jnp.exp(-nc / 2) * _s.hyp0f1(df / 2, product / 4)
    log = -((jnp.sqrt(x1) - jnp.sqrt(nc1)) ** 2) / 2 + (df - 2) / 4 * jnp.log(x1 / nc1)
    return jnp.where(small, near, jnp.exp(log) * _s.ive(df / 2 - 1, jnp.sqrt(x1 * nc1))) / 2


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    """w'(z) / (2 sqrt(pi) sigma^2) at z = (x + i gamma) / (sqrt(2) sigma), by 7.10.2, and by
    7.12.1 where that cancels, also for sigma = 0."""
    place, double = x + 1j * gamma, 2 * sigma * sigma
    far = (x * x + gamma * gamma) > 64 * double
    at = jnp.where(far, place, 1)
    term, total = jnp.where(far, double, 0) / (at * at), 0.0
    for k in range(16, 0, -1):
        total = (1 + total) * term * (2 * k + 1) / 2
    scale = jnp.where(far, 1, double)
    z = jnp.where(far, 0, place) / jnp.sqrt(scale)
    near = (2j / _SQRT_PI - 2 * z * _s.wofz(z)) / (_SQRT_PI * scale)
    return jnp.where(far, -1j / math.pi / (at * at) * (1 + total), near)


# ---- transformations of data ----


def _exprel_slope(u: Any) -> Any:
    return _near_zero(
        u,
        lambda u: _s.hyp1f1(2.0, 3.0, u) / 2,  # 13.6.2 and 13.3.15
        lambda u: (jnp.exp(u) - jnp.expm1(u) / u) / u,
    )


def _boxcox_by_k(log: Any, k: Any, out: Any) -> Any:
    """log^2 exprel'(k log), and what is left of it at x = 0, where log is infinite."""
    u = k * log
    small = jnp.abs(u) < 0.1
    power = jnp.exp(jnp.where(small, 0, u))
    k1 = jnp.where(k == 0, 1, k)
    tail = jnp.where(power == 0, 0, power * jnp.where(power == 0, 0, log))
    log1, u1 = jnp.where(small, log, 0), jnp.where(small, u, 0)
    return jnp.where(small, log1 * log1 * _exprel_slope(u1), (tail - out) / k1)


def _inverse_boxcox_by_k(y: Any, k: Any, x: Any) -> Any:
    """y^2 x g(k y), g the derivative of log1p(u) / u."""
    slope = _near_zero(
        k * y,
        lambda u: -_s.hyp2f1(2.0, 2.0, 3.0, -u) / 2,  # 15.4.1 and 15.5.1
        lambda u: (1 / (1 + u) - jnp.log1p(u) / u) / u,
    )
    return x * y * y * slope


def _pseudo_huber(by_delta: bool) -> Partial:
    def partial(delta: Any, r: Any, out: Any) -> Any:
        nowhere = (delta == 0) & (r == 0)
        long = jnp.hypot(jnp.where(nowhere, 1, delta), r)
        sine = r / (long + delta)
        return sine * sine * r * r / long if by_delta else delta * r / long

    return partial


# ---- elliptic integrals ----


def _ellipk_slope(m: Any, m1: Any, k: Any) -> Any:
    """By 19.4.1, and by 19.5.1 near zero; m1 is 1 - m."""
    return _near_zero(
        m,
        lambda m: math.pi / 8 * _s.hyp2f1(1.5, 1.5, 2.0, m),
        lambda m: _away_from(m1, 0, (_s.ellipe(m) / m1 - k) / (2 * m), jnp.inf),
    )


def _ellipe_slope(m: Any, e: Any) -> Any:
    """By 19.4.2, and by 19.5.2 near zero."""
    return _near_zero(
        m,
        lambda m: -math.pi / 8 * _s.hyp2f1(0.5, 1.5, 2.0, m),
        lambda m: (e - _s.ellipk(m)) / (2 * m),
    )


def _incomplete(first: bool) -> Partial:
    """The integrals of sin^2 / delta^3 / 2 and of -sin^2 / delta / 2, which are RD, 19.16.5, of
    t = 1 / sin(theta)^2 - 1 / sin(phi)^2, and cancel nowhere: whole periods, and the rest."""

    def partial(phi: Any, m: Any, out: Any) -> Any:
        periods = jnp.round(phi / math.pi)
        rest = phi - periods * math.pi
        sine, cosine = jnp.sin(rest), jnp.cos(rest)
        delta = 1 - m * sine * sine
        one = jnp.ones_like(delta)
        if first:
            part = _s.elliprd(cosine * cosine, 1.0, delta)
            whole = _s.elliprd(0.0, 1.0, 1 - m)
        else:
            part = -_s.elliprd(cosine * cosine, delta, 1.0)
            whole = -_s.elliprd(0.0, 1 - m, one)
        periodic = jnp.where(periods == 0, 0, 2 * periods * whole)
        return (sine**3 * part + periodic) / 6

    return partial


def _agm_by_first(a: Any, b: Any, mean: Any) -> Any:
    """Of pi / (2 RF(0, a^2, b^2)), by 19.8.5, 19.25.1 and 19.18.1."""
    return 2 * jnp.abs(a) * mean**2 / (3 * math.pi) * _s.elliprd(0.0, b * b, a * a)


# ---- polynomials and Legendre functions ----


def _of_degree(slope: Callable[..., Any]) -> Partial:
    """slope(n, ..., x) in terms of degree n - 1, which there is none of where n = 0."""

    def partial(n: Any, *rest: Any) -> Any:
        constant = n == 0
        value = slope(jnp.where(constant, 1, n), *rest[:-1])
        return jnp.where(constant, 0, value)

    return partial


def _legendre(n: Any, x: Any) -> Any:
    degree = jnp.where(n < 0, -n - 1, n)  # 14.9.5
    return _of_degree(lambda n, x: _s.eval_gegenbauer(n - 1, 1.5, x))(degree, x, None)


def _chebyshev_u(n: Any, x: Any) -> Any:
    """With U(-n - 2) = -U(n), which follows from 18.5.2."""
    below = n < -1
    slope = _of_degree(lambda n, x: 2 * _s.eval_gegenbauer(n - 1, 2.0, x))
    value = slope(jnp.where(below, -n - 2, jnp.where(n == -1, 0, n)), x, None)
    return jnp.where(below, -value, value)


def _lpmv(m: Any, v: Any, x: Any) -> Any:
    """By 14.10.2 and 14.10.4 for orders that are not negative, and by 14.9.3 for others; and
    its ends, by 14.8.1 and 14.7.17: orders 0 and 2 have a slope there, 1 an infinite one."""
    order = jnp.abs(m)
    end = jnp.abs(x) == 1
    inner = jnp.where(end, 0, x)
    root = jnp.sqrt(1 - inner * inner)
    slope = -_s.lpmv(order + 1, v, inner) / root - order * inner * _s.lpmv(order, v, inner) / (
        root * root
    )
    product = v * (v + 1)
    at_end = jnp.where(order == 0, product / 2, 0)
    at_end = jnp.where(order == 2, -(v - 1) * product * (v + 2) / 4, at_end)
    at_end = jnp.where((order == 1) & (product != 0), jnp.inf, at_end)
    # its own slope is not known, which this makes NaN
    at_end = at_end + 0 * jnp.sqrt(jnp.where(end, 1 - x * x, 1))
    parity = jnp.where(v == jnp.floor(v), 1 - 2 * (jnp.floor(v) % 2), jnp.nan)
    slope = jnp.where(end, at_end * jnp.where(x > 0, 1, -parity * (1 - 2 * (order % 2))), slope)
    reflected = (1 - 2 * (order % 2)) / _s.poch(v - order + 1, 2 * order)
    return jnp.where(m < 0, slope * reflected, slope)


# ---- functions that come with their derivatives ----


def _mathieu(characteristic: str, radial: bool) -> Partial:
    """28.2.1 and 28.20.1; angles are in degrees, and derivatives by radians."""

    def partial(m: Any, q: Any, x: Any, y: Any, slope: Any) -> Any:
        a = getattr(_s, characteristic)(m, q)
        if radial:
            return slope, (a - 2 * q * jnp.cosh(2 * x)) * y
        second = (2 * q * jnp.cos(2 * _DEGREE * x) - a) * y
        return _DEGREE * slope, _DEGREE * second

    return partial


def _kelvin(x: Any, be: Any, ke: Any, bep: Any, kep: Any) -> Any:
    """w'' = i w - w' / x of 10.61.3, and its limit at zero."""
    return bep, kep, _away_from(x, 0, 1j * be - bep / x, 0.5j), 1j * ke - kep / x


_PARABOLIC: Rule = (None, lambda v, x, y, slope: (slope, (x * x / 4 - v - 0.5) * y))  # 12.2.4

_SPECIAL: Mapping[str, Rule] = {
    # Bessel functions: 10.6.1 and 10.29.1, by z alone. Scales of jve, yve and ive have the
    # absolute value of a part of z, and are not holomorphic; those of others are.
    "jv": (None, _half_difference("jv")),
    "yv": (None, _half_difference("yv")),
    "hankel1": (None, _half_difference("hankel1")),
    "hankel2": (None, _half_difference("hankel2")),
    "iv": (None, _half_difference("iv", minus=-1)),
    "kv": (None, _half_difference("kv", sign=-1, minus=-1)),
    "kn": (None, _of_whole(_half_difference("kn", sign=-1, minus=-1))),
    "yn": (None, _of_whole(_half_difference("yn"))),
    "jve": (None, _real_only("jve", _half_difference("jve"))),
    "yve": (None, _real_only("yve", _half_difference("yve"))),
    "ive": (
        None,
        _real_only(
            "ive", lambda v, z, y: (_s.ive(v - 1, z) + _s.ive(v + 1, z)) / 2 - jnp.sign(z) * y
        ),
    ),
    "kve": (None, lambda v, z, y: y - (_s.kve(v - 1, z) + _s.kve(v + 1, z)) / 2),
    "hankel1e": (None, lambda v, z, y: _half_difference("hankel1e")(v, z, y) - 1j * y),
    "hankel2e": (None, lambda v, z, y: _half_difference("hankel2e")(v, z, y) + 1j * y),
    "j0": (lambda x, y: -_s.j1(x),),
    "j1": (lambda x, y: (_s.j0(x) - _s.jv(2, x)) / 2,),
    "y0": (lambda x, y: -_s.y1(x),),
    "y1": (lambda x, y: (_s.y0(x) - _s.yv(2, x)) / 2,),
    "i0": (lambda x, y: _s.i1(x),),
    "i1": (lambda x, y: (_s.i0(x) + _s.iv(2, x)) / 2,),
    "i0e": (lambda x, y: _s.i1e(x) - jnp.sign(x) * y,),
    "i1e": (lambda x, y: (_s.i0e(x) + _s.ive(2, x)) / 2 - jnp.sign(x) * y,),
    "k0": (lambda x, y: -_s.k1(x),),
    "k1": (lambda x, y: -(_s.k0(x) + _s.kv(2, x)) / 2,),
    "k0e": (lambda x, y: y - _s.k1e(x),),
    "k1e": (lambda x, y: y - (_s.k0e(x) + _s.kve(2, x)) / 2,),
    "struve": (None, _struve("struve", 1)),
    "modstruve": (None, _struve("modstruve", -1)),
    "besselpoly": (
        lambda a, k, v, y: _s.besselpoly(a, k + 1, v - 1) - _s.besselpoly(a, k + 1, v + 1),
        None, None,
    ),
    # integrals of Bessel, Struve and Airy functions
    "itj0y0": (lambda x, j, y: (_s.j0(x), _s.y0(x)),),
    "iti0k0": (lambda x, i, k: (_s.i0(x), _s.k0(x)),),
    "it2j0y0": (
        lambda x, j, y: (_of_squares(x, -1, lambda x: (1 - _s.j0(x)) / x), -_s.y0(x) / x),
    ),
    "it2i0k0": (
        lambda x, i, k: (_of_squares(x, 1, lambda x: (_s.i0(x) - 1) / x), -_s.k0(x) / x),
    ),
    "itstruve0": (lambda x, y: _s.struve(0, x),),
    "it2struve0": (lambda x, y: _away_from(x, 0, -_s.struve(0, x) / x, -2 / math.pi),),
    "itmodstruve0": (lambda x, y: _s.modstruve(0, x),),
    "itairy": (lambda x, *y: (*_s.airy(x)[::2], *_s.airy(-x)[::2]),),
    "airy": (
        lambda z, ai, aip, bi, bip: (aip, z * ai, bip, z * bi),  # 9.2.1
    ),
    "airye": (_real_only("airye", _airye),),
    # Kelvin functions: 10.61.3
    "ber": (lambda x, y: _s.berp(x),),
    "bei": (lambda x, y: _s.beip(x),),
    "ker": (lambda x, y: _s.kerp(x),),
    "kei": (lambda x, y: _s.keip(x),),
    "berp": (lambda x, y: -_s.bei(x) - _away_from(x, 0, y / x, 0),),
    "beip": (lambda x, y: _s.ber(x) - _away_from(x, 0, y / x, 0.5),),
    "kerp": (lambda x, y: -_s.kei(x) - y / x,),
    "keip": (lambda x, y: _s.ker(x) - y / x,),
    "kelvin": (_kelvin,),
    # parabolic cylinder and Mathieu functions by x, with their derivatives
    "pbdv": _PARABOLIC,
    "pbvv": _PARABOLIC,
    "pbwa": (None, lambda a, x, y, slope: (slope, (a - x * x / 4) * y)),  # 12.2.3
    "mathieu_cem": (None, None, _mathieu("mathieu_a", False)),
    "mathieu_sem": (None, None, _mathieu("mathieu_b", False)),
    "mathieu_modcem1": (None, None, _mathieu("mathieu_a", True)),
    "mathieu_modcem2": (None, None, _mathieu("mathieu_a", True)),
    "mathieu_modsem1": (None, None, _mathieu("mathieu_b", True)),
    "mathieu_modsem2": (None, None, _mathieu("mathieu_b", True)),
    # gamma and beta functions: 5.2.2, 5.12, 8.8.13, 8.17.20
    "gamma": (lambda x, y: y * _s.psi(x),),
    "gammaln": (lambda x, y: _s.psi(x),),
    "gammasgn": (lambda x, y: jnp.zeros_like(x),),
    "loggamma": (lambda x, y: _s.psi(x),),
    "rgamma": (lambda x, y: _rgamma_slope(x),),
    "psi": (_real_only("psi", lambda x, y: _trigamma(x)),),
    "poch": (_poch_by_z, lambda z, m, y: y * _s.psi(z + m)),
    "binom": (_binom(by_n=True), _binom(by_n=False)),
    "beta": (
        lambda a, b, y: y * (_s.psi(a) - _s.psi(a + b)),
        lambda a, b, y: y * (_s.psi(b) - _s.psi(a + b)),
    ),
    "betaln": (
        lambda a, b, y: _s.psi(a) - _s.psi(a + b),
        lambda a, b, y: _s.psi(b) - _s.psi(a + b),
    ),
    "gammainc": (
        lambda a, x, y: _gammainc_by_a(a, x),
        lambda a, x, y: _gamma_density(a, x),
    ),
    "gammaincc": (
        lambda a, x, y: -_gammainc_by_a(a, x),
        lambda a, x, y: -_gamma_density(a, x),
    ),
    "gammaincinv": (
        lambda a, p, x: -_gammainc_by_a(a, x) / _gamma_density(a, x),
        lambda a, p, x: 1 / _gamma_density(a, x),
    ),
    "gammainccinv": (
        lambda a, p, x: -_gammainc_by_a(a, x) / _gamma_density(a, x),
        lambda a, p, x: -1 / _gamma_density(a, x),
    ),
    "betainc": (None, None, lambda a, b, x, y: _beta_density(a, b, x)),
    "betaincc": (None, None, lambda a, b, x, y: -_beta_density(a, b, x)),
    "betaincinv": (None, None, lambda a, b, p, x: 1 / _beta_density(a, b, x)),
    "betainccinv": (None, None, lambda a, b, p, x: -1 / _beta_density(a, b, x)),
    # error functions: 7.2, 7.10.2, 7.19.1
    "erf": (lambda x, y: 2 / _SQRT_PI * jnp.exp(-x * x),),
    "erfc": (lambda x, y: -2 / _SQRT_PI * jnp.exp(-x * x),),
    "erfcx": (lambda x, y: 2 * x * y - 2 / _SQRT_PI,),
    "erfi": (lambda x, y: 2 / _SQRT_PI * jnp.exp(x * x),),
    "erfinv": (lambda x, y: _SQRT_PI / 2 * jnp.exp(y * y),),
    "erfcinv": (lambda x, y: -_SQRT_PI / 2 * jnp.exp(y * y),),
    "dawsn": (lambda x, y: 1 - 2 * x * y,),
    "wofz": (lambda z, y: 2j / _SQRT_PI - 2 * z * y,),
    "voigt_profile": (
        lambda x, sigma, gamma, y: jnp.real(_voigt(x, sigma, gamma)),
        None,
        lambda x, sigma, gamma, y: -jnp.imag(_voigt(x, sigma, gamma)),
    ),
    "ndtr": (lambda x, y: jnp.exp(-x * x / 2) / _SQRT_2PI,),
    "ndtri": (lambda x, y: _SQRT_2PI * jnp.exp(y * y / 2),),
    "ndtri_exp": (lambda y, x: _SQRT_2PI * jnp.exp(y + x * x / 2),),
    "log_ndtr": (lambda x, y: jnp.exp(-x * x / 2 - y) / _SQRT_2PI,),
    "owens_t": (
        lambda h, a, y: -jnp.exp(-h * h / 2) * _s.erf(a * h / math.sqrt(2)) / (2 * _SQRT_2PI),
        lambda h, a, y: jnp.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)),
    ),
    # integrals: 6.2, 7.2.7, 8.19.13
    "expi": (lambda x, y: jnp.exp(x) / x,),
    "exp1": (lambda x, y: -jnp.exp(-x) / x,),
    "expn": (
        None,
        lambda n, x, y: jnp.where(
            n == 0, -(1 + 1 / x) * jnp.exp(-x) / x, -_s.expn(jnp.where(n == 0, 1, n) - 1, x)
        ),
    ),
    "sici": (lambda x, si, ci: (_sinc(x, -1, jnp.sin), jnp.cos(x) / x),),
    "shichi": (lambda x, shi, chi: (_sinc(x, 1, jnp.sinh), jnp.cosh(x) / x),),
    "fresnel": (
        lambda x, s, c: (jnp.sin(jnp.pi / 2 * x * x), jnp.cos(jnp.pi / 2 * x * x)),
    ),
    "modfresnelp": (lambda x, f, k: _modified_fresnel(x, k, 1j),),
    "modfresnelm": (lambda x, f, k: _modified_fresnel(x, k, -1j),),
    "spence": (
        lambda x, y: _near_zero(  # 25.12.2, and 15.4.1 near one
            x - 1, lambda u: -_s.hyp2f1(1.0, 1.0, 2.0, -u), lambda u: -jnp.log(1 + u) / u
        ),
    ),
    # elliptic integrals, complete by the parameter m, incomplete by both: 19.2.4, 19.2.5;
    # functions by u: table 22.13.1; Carlson's RF: 19.18.1
    "ellipk": (lambda m, y: _ellipk_slope(m, 1 - m, y),),
    "ellipkm1": (lambda p, y: -_ellipk_slope(1 - p, p, y),),
    "ellipe": (lambda m, y: _ellipe_slope(m, y),),
    "ellipkinc": (
        lambda phi, m, y: 1 / jnp.sqrt(1 - m * jnp.sin(phi) ** 2),
        _incomplete(first=True),
    ),
    "ellipeinc": (
        lambda phi, m, y: jnp.sqrt(1 - m * jnp.sin(phi) ** 2),
        _incomplete(first=False),
    ),
    "ellipj": (
        lambda u, m, sn, cn, dn, ph: (cn * dn, -sn * dn, -m * sn * cn, dn),
        None,
    ),
    "elliprf": (
        lambda x, y, z, out: -_s.elliprd(y, z, x) / 6,
        lambda x, y, z, out: -_s.elliprd(x, z, y) / 6,
        lambda x, y, z, out: -_s.elliprd(x, y, z) / 6,
    ),
    "agm": (
        lambda a, b, y: _agm_by_first(a, b, y),
        lambda a, b, y: _agm_by_first(b, a, y),
    ),
    # hypergeometric functions by z: 13.3.15, 13.3.22, 15.5.1, 16.3.1, 10.46.1
    "hyp0f1": (None, lambda v, z, y: _s.hyp0f1(v + 1, z) / v),
    "hyp1f1": (None, None, lambda a, b, z, y: a / b * _s.hyp1f1(a + 1, b + 1, z)),
    "hyperu": (None, None, lambda a, b, z, y: -a * _s.hyperu(a + 1, b + 1, z)),
    "hyp2f1": (
        None, None, None,
        lambda a, b, c, z, y: a * b / c * _s.hyp2f1(a + 1, b + 1, c + 1, z),
    ),
    "wright_bessel": (None, None, lambda a, b, x, y: _s.wright_bessel(a, a + b, x)),
    "log_wright_bessel": (
        None, None, lambda a, b, x, y: jnp.exp(_s.log_wright_bessel(a, a + b, x) - y)
    ),
    "wrightomega": (lambda z, y: y / (1 + y),),  # from y + log(y) = z
    # polynomials and Legendre functions by x: 18.9.15 to 18.9.28, in 18.7.1 to 18.7.10's terms
    "eval_chebyt": (None, _of_degree(lambda n, x: n * _s.eval_chebyu(n - 1, x))),
    "eval_chebyu": (None, lambda n, x, y: _chebyshev_u(n, x)),
    "eval_chebyc": (None, _of_degree(lambda n, x: n * _s.eval_chebys(n - 1, x))),
    "eval_chebys": (None, lambda n, x, y: _chebyshev_u(n, x / 2) / 2),
    "eval_sh_chebyt": (None, _of_degree(lambda n, x: 2 * n * _s.eval_sh_chebyu(n - 1, x))),
    "eval_sh_chebyu": (None, lambda n, x, y: 2 * _chebyshev_u(n, 2 * x - 1)),
    "eval_legendre": (None, lambda n, x, y: _legendre(n, x)),
    "eval_sh_legendre": (None, lambda n, x, y: 2 * _legendre(n, 2 * x - 1)),
    "eval_jacobi": (
        None, None, None,
        _of_degree(
            lambda n, a, b, x: (n + a + b + 1) / 2 * _s.eval_jacobi(n - 1, a + 1, b + 1, x)
        ),
    ),
    "eval_sh_jacobi": (  # whose leading coefficient is 1
        None, None, None,
        _of_degree(lambda n, p, q, x: n * _s.eval_sh_jacobi(n - 1, p + 2, q + 1, x)),
    ),
    "eval_gegenbauer": (
        None, None, _of_degree(lambda n, a, x: 2 * a * _s.eval_gegenbauer(n - 1, a + 1, x))
    ),
    "eval_hermite": (None, _of_degree(lambda n, x: 2 * n * _s.eval_hermite(n - 1, x))),
    "eval_hermitenorm": (None, _of_degree(lambda n, x: n * _s.eval_hermitenorm(n - 1, x))),
    "eval_laguerre": (None, _of_degree(lambda n, x: -_s.eval_genlaguerre(n - 1, 1.0, x))),
    "eval_genlaguerre": (
        None, None, _of_degree(lambda n, a, x: -_s.eval_genlaguerre(n - 1, a + 1, x))
    ),
    "lpmv": (None, None, lambda m, v, x, y: _lpmv(m, v, x)),
    # distributions: 8.17.5, 8.4.10, 8.2; Abramowitz and Stegun, chapter 26
    "bdtr": (None, None, lambda k, n, p, y: -_binomial(k, n, p)),
    "bdtrc": (None, None, lambda k, n, p, y: _binomial(k, n, p)),
    "bdtri": (None, None, lambda k, n, y, p: -1 / _binomial(k, n, p)),
    "nbdtr": (None, None, lambda k, n, p, y: _negative_binomial(k, n, p)),
    "nbdtrc": (None, None, lambda k, n, p, y: -_negative_binomial(k, n, p)),
    "nbdtri": (None, None, lambda k, n, y, p: 1 / _negative_binomial(k, n, p)),
    "pdtr": (None, lambda k, m, y: -_poisson(k, m)),
    "pdtrc": (None, lambda k, m, y: _poisson(k, m)),
    "pdtri": (None, lambda k, y, m: -1 / _poisson(k, m)),
    "stdtr": (None, lambda df, t, y: _student(df, t)),
    "stdtrit": (None, lambda df, p, t: 1 / _student(df, t)),
    "chdtr": (
        lambda v, x, y: _gammainc_by_a(v / 2, x / 2) / 2,
        lambda v, x, y: _gamma_density(v / 2, x / 2) / 2,
    ),
    "chdtrc": (
        lambda v, x, y: -_gammainc_by_a(v / 2, x / 2) / 2,
        lambda v, x, y: -_gamma_density(v / 2, x / 2) / 2,
    ),
    "chdtri": (
        lambda v, p, x: -_gammainc_by_a(v / 2, x / 2) / _gamma_density(v / 2, x / 2),
        lambda v, p, x: -2 / _gamma_density(v / 2, x / 2),
    ),
    "chndtr": (
        lambda x, df, nc, y: _noncentral(x, df, nc),
        None,
        lambda x, df, nc, y: -_noncentral(x, df + 2, nc),
    ),
    "chndtrix": (
        lambda p, df, nc, x: 1 / _noncentral(x, df, nc),
        None,
        lambda p, df, nc, x: _noncentral(x, df + 2, nc) / _noncentral(x, df, nc),
    ),
    "fdtr": (None, None, lambda dfn, dfd, x, y: _fisher(dfn, dfd, x)),
    "fdtrc": (None, None, lambda dfn, dfd, x, y: -_fisher(dfn, dfd, x)),
    "fdtri": (None, None, lambda dfn, dfd, p, x: 1 / _fisher(dfn, dfd, x)),
    "gdtr": (
        lambda a, b, x, y: x * _gamma_density(b, a * x),
        lambda a, b, x, y: _gammainc_by_a(b, a * x),
        lambda a, b, x, y: a * _gamma_density(b, a * x),
    ),
    "gdtrc": (
        lambda a, b, x, y: -x * _gamma_density(b, a * x),
        lambda a, b, x, y: -_gammainc_by_a(b, a * x),
        lambda a, b, x, y: -a * _gamma_density(b, a * x),
    ),
    "gdtrix": (
        lambda a, b, p, x: -x / a,
        lambda a, b, p, x: -_gammainc_by_a(b, a * x) / (a * _gamma_density(b, a * x)),
        lambda a, b, p, x: 1 / (a * _gamma_density(b, a * x)),
    ),
    "gdtria": (
        lambda p, b, x, a: 1 / (x * _gamma_density(b, a * x)),
        lambda p, b, x, a: -_gammainc_by_a(b, a * x) / (x * _gamma_density(b, a * x)),
        lambda p, b, x, a: -a / x,
    ),
    "gdtrib": (
        lambda a, p, x, b: -x * _gamma_density(b, a * x) / _gammainc_by_a(b, a * x),
        lambda a, p, x, b: 1 / _gammainc_by_a(b, a * x),
        lambda a, p, x, b: -a * _gamma_density(b, a * x) / _gammainc_by_a(b, a * x),
    ),
    "nrdtrimn": (
        lambda p, std, x, mn: -std * _SQRT_2PI * jnp.exp(_s.ndtri(p) ** 2 / 2),
        lambda p, std, x, mn: -_s.ndtri(p),
        lambda p, std, x, mn: jnp.ones_like(x),
    ),
    "nrdtrisd": (
        lambda mn, p, x, std: -1 / _s.ndtri(p),
        lambda mn, p, x, std: (
            -(x - mn) / _s.ndtri(p) ** 2 * _SQRT_2PI * jnp.exp(_s.ndtri(p) ** 2 / 2)
        ),
        lambda mn, p, x, std: 1 / _s.ndtri(p),
    ),
    "tklmbda": (lambda x, k, y: 1 / (y ** (k - 1) + (1 - y) ** (k - 1)), None),
    # statistics and information
    "expit": (lambda x, y: y * (1 - y),),
    "logit": (lambda x, y: 1 / (x * (1 - x)),),
    "log_expit": (lambda x, y: _s.expit(-x),),
    "entr": (lambda x, y: -jnp.log(x) - 1,),
    "rel_entr": (lambda x, y, out: jnp.log(x / y) + 1, lambda x, y, out: -x / y),
    "kl_div": (lambda x, y, out: jnp.log(x / y), lambda x, y, out: 1 - x / y),
    "xlogy": (lambda x, y, out: jnp.log(y), lambda x, y, out: x / y),
    "xlog1py": (lambda x, y, out: jnp.log1p(y), lambda x, y, out: x / (1 + y)),
    "huber": (
        lambda delta, r, y: jnp.maximum(jnp.abs(r) - delta, 0),
        lambda delta, r, y: jnp.clip(r, -delta, delta),
    ),
    "pseudo_huber": (_pseudo_huber(by_delta=True), _pseudo_huber(by_delta=False)),
    "boxcox": (
        lambda x, k, y: x ** (k - 1),
        lambda x, k, y: _boxcox_by_k(jnp.log(x), k, y),
    ),
    "boxcox1p": (
        lambda x, k, y: (1 + x) ** (k - 1),
        lambda x, k, y: _boxcox_by_k(jnp.log1p(x), k, y),
    ),
    "inv_boxcox": (
        lambda y, k, x: x ** (1 - k),
        lambda y, k, x: _inverse_boxcox_by_k(y, k, x),
    ),
    "inv_boxcox1p": (
        lambda y, k, x: (1 + x) ** (1 - k),
        lambda y, k, x: _inverse_boxcox_by_k(y, k, 1 + x),
    ),
    # elementary functions
    "exp2": (lambda x, y: y * math.log(2),),
    "exp10": (lambda x, y: y * math.log(10),),
    "expm1": (lambda x, y: y + 1,),
    "exprel": (lambda x, y: _exprel_slope(x),),
    "log1p": (lambda x, y: 1 / (1 + x),),
    "powm1": (lambda x, y, out: y * x ** (y - 1), lambda x, y, out: (out + 1) * jnp.log(x)),
    "cbrt": (lambda x, y: 1 / (3 * y * y),),
    "cosm1": (lambda x, y: -jnp.sin(x),),
    "sindg": (lambda x, y: _DEGREE * _s.cosdg(x),),
    "cosdg": (lambda x, y: -_DEGREE * _s.sindg(x),),
    "tandg": (lambda x, y: _DEGREE * (1 + y * y),),
    "cotdg": (lambda x, y: -_DEGREE * (1 + y * y),),
    "radian": (lambda *_: _DEGREE, lambda *_: _DEGREE / 60, lambda *_: _DEGREE / 3600),
    "round": (lambda x, y: jnp.zeros_like(x),),  # as jnp.round has it
}  # fmt: skip


def rule(module: str | None, name: str) -> Rule | Callable[..., Any] | None:
    """What is known of a ufunc: its partial derivatives, or a function of jax.numpy that is
    the same and whose derivatives JAX has."""
    if module == "scipy.special":
        return _SPECIAL.get(name)
    if module == "numpy":
        same = getattr(jnp, name, None)
        return same if isinstance(getattr(np, name, None), np.ufunc) else None
    return None


def jvp(function: Function, known: Rule | Callable[..., Any]) -> Callable[..., Any]:
    """The rule for one inner loop, as ``defjvp`` takes it, with symbolic zeros."""
    parameters = function.description.parameters[1:]
    if callable(known):
        return _of_jax(function, known)
    partials: Rule = known

    def apply(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        out = function(*primals)
        outs = out if isinstance(out, tuple) else (out,)
        totals: list[Any] = [None] * len(outs)
        for k, tangent in enumerate(tangents):
            if type(tangent) is SymbolicZero or tangent.dtype == jax.dtypes.float0:
                continue
            partial = partials[k]
            if partial is None:
                raise NotImplementedError(
                    f"{function.__name__}: no derivative by '{parameters[k].name}' is known; "
                    f"jaxc.ufunc(...).defjvp gives one, and jax.lax.stop_gradient says that "
                    f"it is not wanted"
                )
            slopes = partial(*primals, *outs)
            slopes = slopes if isinstance(slopes, tuple) else (slopes,)
            for i, slope in enumerate(slopes):
                term = (slope * tangent).astype(outs[i].dtype)
                totals[i] = term if totals[i] is None else totals[i] + term
        results = tuple(
            jnp.zeros_like(o) if t is None else jnp.broadcast_to(t, o.shape)
            for o, t in zip(outs, totals, strict=True)
        )
        return out, results if isinstance(out, tuple) else results[0]

    return apply


def _like(tangent: Any, primal: Any) -> Any:
    """In the primal's dtype; one that has none, as of an integer, stays as it is."""
    if tangent.dtype == jax.dtypes.float0:
        return tangent
    return tangent.astype(primal.dtype)


def _of_jax(function: Function, same: Callable[..., Any]) -> Callable[..., Any]:
    def apply(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        moved = [k for k, t in enumerate(tangents) if type(t) is not SymbolicZero]

        def of_moved(*values: Any) -> Any:
            given = list(primals)
            for k, value in zip(moved, values, strict=True):
                given[k] = value
            return same(*given)

        out = function(*primals)
        at, along = [primals[k] for k in moved], [tangents[k] for k in moved]
        _, tangent = jax.jvp(of_moved, at, along)
        return out, jax.tree.map(_like, tangent, out)

    return apply
