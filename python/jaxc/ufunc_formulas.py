"""Formulas of derivatives that several ufuncs share, in terms of other ufuncs.

The numbers are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

#: (inputs and then outputs) -> partial derivative; a tuple of one for each output.
Partial = Callable[..., Any]
#: A partial derivative by each input, None where there is none.
Rule = Sequence[Partial | None]

# Numbers of Python, not of NumPy, so that formulas stay in float32 where their inputs are.
SQRT_PI = math.sqrt(math.pi)
SQRT_2PI = math.sqrt(2 * math.pi)
DEGREE = math.pi / 180


class _Special:
    """scipy.special's ufuncs, adopted when a formula names them."""

    def __getattr__(self, name: str) -> Any:
        from jaxc.ufuncs import ufunc

        return ufunc(getattr(importlib.import_module("scipy.special"), name))


sp = _Special()


# ---- at the edges ----


def away_from(x: Any, place: float, value: Any, limit: Any) -> Any:
    return jnp.where(x == place, limit, value)


def near_zero(u: Any, near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
    """near(u) for small u, where far(u) would cancel; each sees only what it is good for."""
    small = jnp.abs(u) < 0.1
    return jnp.where(small, near(jnp.where(small, u, 0)), far(jnp.where(small, 1, u)))


def real_only(name: str, partial: Partial) -> Partial:
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


def half_difference(name: str, sign: float = 1, minus: float = 1) -> Partial:
    """sign (f(v - 1, z) - minus f(v + 1, z)) / 2."""

    def partial(v: Any, z: Any, out: Any) -> Any:
        f = getattr(sp, name)
        return sign * (f(v - 1, z) - minus * f(v + 1, z)) / 2

    return partial


def of_whole(partial: Partial) -> Partial:
    """Of a function that takes the whole part of its first argument."""
    return lambda n, *rest: partial(jnp.trunc(n).astype(n.dtype), *rest)


def struve(name: str, sign: float) -> Partial:
    """The recurrence relations of 11.4(v): of H with sign 1, of L with -1."""

    def partial(v: Any, z: Any, out: Any) -> Any:
        f = getattr(sp, name)
        inhomogeneous = (z / 2) ** v * sp.rgamma(v + 1.5) / SQRT_PI
        return (f(v - 1, z) - sign * f(v + 1, z) + inhomogeneous) / 2

    return partial


def of_squares(x: Any, sign: float, far: Callable[[Any], Any]) -> Any:
    """(1 - J0(x)) / x, or (I0(x) - 1) / x with sign 1, by 10.2.2 and 10.25.2 near zero."""

    def near(x: Any) -> Any:
        q, total = sign * x * x / 4, 0.0
        for k in (6, 5, 4, 3, 2, 1):
            total = total * q + 1 / math.factorial(k) ** 2
        return x / 4 * total

    return near_zero(x, near, far)


def airye(x: Any, ai: Any, aip: Any, bi: Any, bip: Any) -> Any:
    """9.2.1 and the scales exp(2/3 x^(3/2)) and its inverse, which are 1 where x < 0."""
    root = jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1)), 0)
    return aip + root * ai, x * ai + root * aip, bip - root * bi, x * bi - root * bip


def sinc(x: Any, sign: float, sine: Callable[[Any], Any]) -> Any:
    """sin(x) / x, or sinh(x) / x with sign 1; near zero by 10.16.9 and 10.39.9."""
    return near_zero(x, lambda x: sp.hyp0f1(1.5, sign * x * x / 4), lambda x: sine(x) / x)


def modified_fresnel(x: Any, k: Any, i: complex) -> tuple[Any, Any]:
    """The integral of exp(i t^2) from x on, and the same times exp(-i (x^2 + pi/4)) / sqrt(pi),
    which is k; i or -i."""
    turn = (1 - i) / math.sqrt(2)  # exp(-i pi / 4)
    return -jnp.exp(i * x * x), -turn / SQRT_PI - 2 * i * x * k


# ---- gamma and beta functions ----


def trigamma(x: Any) -> Any:
    """The derivative of psi; 5.15.6 reflects negative x."""
    reflected = jnp.where(x > 0, x, 1 - x)
    positive = jax.lax.polygamma(jnp.ones_like(x), reflected)
    return jnp.where(x > 0, positive, (jnp.pi / jnp.sin(jnp.pi * x)) ** 2 - positive)


def is_pole(x: Any) -> Any:
    """Whether gamma has a pole: at 0, -1, -2, ..."""
    real = jnp.real(x)
    return (real <= 0) & (real == jnp.floor(real)) & (jnp.imag(x) == 0)


def rgamma_slope(x: Any) -> Any:
    """That of 1/gamma, 5.2.2; 5.5.3 reflects, so that nothing happens at gamma's poles."""
    left = jnp.real(x) < 0.5
    mirror = 1 - jnp.where(left, x, 0)
    reflected = sp.gamma(mirror) * (
        jnp.cos(math.pi * x) - sp.psi(mirror) * jnp.sin(math.pi * x) / math.pi
    )
    right = jnp.where(left, 1, x)
    return jnp.where(left, reflected, -sp.psi(right) * sp.rgamma(right))


def poch_by_z(z: Any, m: Any, out: Any) -> Any:
    top, bottom = is_pole(z + m), is_pole(z)
    both = top & bottom  # 5.5.4 reflects both of psi's arguments, with the same cotangent
    upper = sp.psi(jnp.where(both, 1 - z - m, z + m))
    lower = sp.psi(jnp.where(both, 1 - z, jnp.where(bottom, 1, z)))
    at_pole = sp.gamma(z + m) * (upper * sp.rgamma(z) + rgamma_slope(z))
    return jnp.where(bottom & ~top, at_pole, out * (upper - lower))


def binom(by_n: bool) -> Partial:
    """gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)), whose zeros are poles of a gamma."""

    def partial(n: Any, k: Any, out: Any) -> Any:
        rest, first = n - k + 1, k + 1
        zero = is_pole(rest) | is_pole(first)
        lower = sp.psi(jnp.where(zero, 1, rest))
        whole, a, b = sp.gamma(n + 1), sp.rgamma(rest), sp.rgamma(first)
        if by_n:
            at_zero = whole * b * (sp.psi(n + 1) * a + rgamma_slope(rest))
            return jnp.where(zero, at_zero, out * (sp.psi(n + 1) - lower))
        at_zero = whole * (rgamma_slope(first) * a - rgamma_slope(rest) * b)
        return jnp.where(zero, at_zero, out * (lower - sp.psi(jnp.where(zero, 1, first))))

    return partial


def gammainc_by_a(a: Any, x: Any) -> Any:
    return jax.lax.igamma_grad_a(*jnp.broadcast_arrays(a, x))


def times_log(a: Any, x: Any) -> Any:
    """a log(x), and 0 where a is."""
    return jnp.where(a == 0, 0, a * jnp.log(jnp.where(a == 0, 1, x)))


def times_log1p(a: Any, x: Any) -> Any:
    return jnp.where(a == 0, 0, a * jnp.log1p(jnp.where(a == 0, 0, x)))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    return jnp.exp(times_log(a - 1, x) + times_log1p(b - 1, -x) - sp.betaln(a, b))


def gamma_density(a: Any, x: Any) -> Any:
    return jnp.exp(times_log(a - 1, x) - x - sp.gammaln(a))


# ---- distributions ----


def as_real(k: Any, like: Any) -> Any:
    """The whole number below a count, in the dtype of a probability."""
    return jnp.floor(k).astype(like.dtype)


def binomial(k: Any, n: Any, p: Any) -> Any:
    """Minus the derivative of the distribution function by p: that of 8.17.5."""
    k, n = as_real(k, p), as_real(n, p)
    inside = k < n
    return jnp.where(
        inside, beta_density(k + 1, jnp.where(inside, n - k, 1), p), 0 * p
    )  # all of the distribution is below k = n


def negative_binomial(k: Any, n: Any, p: Any) -> Any:
    return beta_density(as_real(n, p), as_real(k, p) + 1, p)


def poisson(k: Any, m: Any) -> Any:
    return gamma_density(as_real(k, m) + 1, m)


def student(df: Any, t: Any) -> Any:
    df = jnp.minimum(df, 1e30)  # the normal distribution to all digits
    log = -(df + 1) / 2 * jnp.log1p(t * t / df) - sp.betaln(df / 2, 0.5)
    return jnp.exp(log) / jnp.sqrt(df)


def fisher(dfn: Any, dfd: Any, x: Any) -> Any:
    """The density of betainc(dfn / 2, dfd / 2, dfn x / (dfd + dfn x))."""
    a, b, odds = dfn / 2, dfd / 2, dfn * x / dfd
    log = times_log(a - 1, odds) - (a + b) * jnp.log1p(odds) - sp.betaln(a, b)
    return jnp.exp(log) * dfn / dfd


def noncentral(x: Any, df: Any, nc: Any) -> Any:
    """The density of the noncentral chi-square distribution; Johnson, Kotz and Balakrishnan,
    Continuous Univariate Distributions 2, 29.4, by 0F1 where a power of nc would overflow."""
    small = x * nc < 1
    x1, nc1 = jnp.where(small, 1, x), jnp.where(small, 1, nc)
    product = jnp.where(small, x * nc, 0)
    near = gamma_density(df / 2, x / 2) * jnp.exp(-nc / 2) * sp.hyp0f1(df / 2, product / 4)
    log = -((jnp.sqrt(x1) - jnp.sqrt(nc1)) ** 2) / 2 + (df - 2) / 4 * jnp.log(x1 / nc1)
    return jnp.where(small, near, jnp.exp(log) * sp.ive(df / 2 - 1, jnp.sqrt(x1 * nc1))) / 2


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
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
    near = (2j / SQRT_PI - 2 * z * sp.wofz(z)) / (SQRT_PI * scale)
    return jnp.where(far, -1j / math.pi / (at * at) * (1 + total), near)


# ---- transformations of data ----


def exprel_slope(u: Any) -> Any:
    return near_zero(
        u,
        lambda u: sp.hyp1f1(2.0, 3.0, u) / 2,  # 13.6.2 and 13.3.15
        lambda u: (jnp.exp(u) - jnp.expm1(u) / u) / u,
    )


def boxcox_by_k(log: Any, k: Any, out: Any) -> Any:
    """log^2 exprel'(k log), and what is left of it at x = 0, where log is infinite."""
    u = k * log
    small = jnp.abs(u) < 0.1
    power = jnp.exp(jnp.where(small, 0, u))
    k1 = jnp.where(k == 0, 1, k)
    tail = jnp.where(power == 0, 0, power * jnp.where(power == 0, 0, log))
    log1, u1 = jnp.where(small, log, 0), jnp.where(small, u, 0)
    return jnp.where(small, log1 * log1 * exprel_slope(u1), (tail - out) / k1)


def inverse_boxcox_by_k(y: Any, k: Any, x: Any) -> Any:
    """y^2 x g(k y), g the derivative of log1p(u) / u."""
    slope = near_zero(
        k * y,
        lambda u: -sp.hyp2f1(2.0, 2.0, 3.0, -u) / 2,  # 15.4.1 and 15.5.1
        lambda u: (1 / (1 + u) - jnp.log1p(u) / u) / u,
    )
    return x * y * y * slope


def pseudo_huber(by_delta: bool) -> Partial:
    def partial(delta: Any, r: Any, out: Any) -> Any:
        nowhere = (delta == 0) & (r == 0)
        long = jnp.hypot(jnp.where(nowhere, 1, delta), r)
        sine = r / (long + delta)
        return sine * sine * r * r / long if by_delta else delta * r / long

    return partial


# ---- elliptic integrals ----


def ellipk_slope(m: Any, m1: Any, k: Any) -> Any:
    """By 19.4.1, and by 19.5.1 near zero; m1 is 1 - m."""
    return near_zero(
        m,
        lambda m: math.pi / 8 * sp.hyp2f1(1.5, 1.5, 2.0, m),
        lambda m: away_from(m1, 0, (sp.ellipe(m) / m1 - k) / (2 * m), jnp.inf),
    )


def ellipe_slope(m: Any, e: Any) -> Any:
    """By 19.4.2, and by 19.5.2 near zero."""
    return near_zero(
        m,
        lambda m: -math.pi / 8 * sp.hyp2f1(0.5, 1.5, 2.0, m),
        lambda m: (e - sp.ellipk(m)) / (2 * m),
    )


def incomplete(first: bool) -> Partial:
    """The integrals of sin^2 / delta^3 / 2 and of -sin^2 / delta / 2, which are RD, 19.16.5, of
    t = 1 / sin(theta)^2 - 1 / sin(phi)^2, and cancel nowhere: whole periods, and the rest."""

    def partial(phi: Any, m: Any, out: Any) -> Any:
        periods = jnp.round(phi / math.pi)
        rest = phi - periods * math.pi
        sine, cosine = jnp.sin(rest), jnp.cos(rest)
        delta = 1 - m * sine * sine
        one = jnp.ones_like(delta)
        if first:
            part = sp.elliprd(cosine * cosine, 1.0, delta)
            whole = sp.elliprd(0.0, 1.0, 1 - m)
        else:
            part = -sp.elliprd(cosine * cosine, delta, 1.0)
            whole = -sp.elliprd(0.0, 1 - m, one)
        periodic = jnp.where(periods == 0, 0, 2 * periods * whole)
        return (sine**3 * part + periodic) / 6

    return partial


def agm_by_first(a: Any, b: Any, mean: Any) -> Any:
    """Of pi / (2 RF(0, a^2, b^2)), by 19.8.5, 19.25.1 and 19.18.1."""
    return 2 * jnp.abs(a) * mean**2 / (3 * math.pi) * sp.elliprd(0.0, b * b, a * a)


# ---- polynomials and Legendre functions ----


def of_degree(slope: Callable[..., Any]) -> Partial:
    """slope(n, ..., x) in terms of degree n - 1, which there is none of where n = 0."""

    def partial(n: Any, *rest: Any) -> Any:
        constant = n == 0
        value = slope(jnp.where(constant, 1, n), *rest[:-1])
        return jnp.where(constant, 0, value)

    return partial


def legendre(n: Any, x: Any) -> Any:
    degree = jnp.where(n < 0, -n - 1, n)  # 14.9.5
    return of_degree(lambda n, x: sp.eval_gegenbauer(n - 1, 1.5, x))(degree, x, None)


def chebyshev_u(n: Any, x: Any) -> Any:
    """With U(-n - 2) = -U(n), which follows from 18.5.2."""
    below = n < -1
    slope = of_degree(lambda n, x: 2 * sp.eval_gegenbauer(n - 1, 2.0, x))
    value = slope(jnp.where(below, -n - 2, jnp.where(n == -1, 0, n)), x, None)
    return jnp.where(below, -value, value)


def lpmv(m: Any, v: Any, x: Any) -> Any:
    """By 14.10.2 and 14.10.4 for orders that are not negative, and by 14.9.3 for others; and
    its ends, by 14.8.1 and 14.7.17: orders 0 and 2 have a slope there, 1 an infinite one."""
    order = jnp.abs(m)
    end = jnp.abs(x) == 1
    inner = jnp.where(end, 0, x)
    root = jnp.sqrt(1 - inner * inner)
    slope = -sp.lpmv(order + 1, v, inner) / root - order * inner * sp.lpmv(order, v, inner) / (
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
    reflected = (1 - 2 * (order % 2)) / sp.poch(v - order + 1, 2 * order)
    return jnp.where(m < 0, slope * reflected, slope)


# ---- functions that come with their derivatives ----


def mathieu(characteristic: str, radial: bool) -> Partial:
    """28.2.1 and 28.20.1; angles are in degrees, and derivatives by radians."""

    def partial(m: Any, q: Any, x: Any, y: Any, slope: Any) -> Any:
        a = getattr(sp, characteristic)(m, q)
        if radial:
            return slope, (a - 2 * q * jnp.cosh(2 * x)) * y
        second = (2 * q * jnp.cos(2 * DEGREE * x) - a) * y
        return DEGREE * slope, DEGREE * second

    return partial


def kelvin(x: Any, be: Any, ke: Any, bep: Any, kep: Any) -> Any:
    """w'' = i w - w' / x of 10.61.3, and its limit at zero."""
    return bep, kep, away_from(x, 0, 1j * be - bep / x, 0.5j), 1j * ke - kep / x
