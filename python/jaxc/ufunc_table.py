"""Partial derivatives of the ufuncs of scipy.special.

Formulas are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov), whose
numbers stand beside them; where there is no number, the function's definition in SciPy's
documentation is differentiated. An input without one cannot be differentiated by: that is an
error, not a zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax.numpy as jnp

from jaxc import ufunc_formulas as by
from jaxc.ufunc_formulas import Rule, sp

_PARABOLIC: Rule = (None, lambda v, x, y, slope: (slope, (x * x / 4 - v - 0.5) * y))  # 12.2.4

SPECIAL: Mapping[str, Rule] = {
    # Bessel functions: 10.6.1 and 10.29.1, by z alone. Scales of jve, yve and ive have the
    # absolute value of a part of z, and are not holomorphic; those of others are.
    "jv": (None, by.half_difference("jv")),
    "yv": (None, by.half_difference("yv")),
    "hankel1": (None, by.half_difference("hankel1")),
    "hankel2": (None, by.half_difference("hankel2")),
    "iv": (None, by.half_difference("iv", minus=-1)),
    "kv": (None, by.half_difference("kv", sign=-1, minus=-1)),
    "kn": (None, by.of_whole(by.half_difference("kn", sign=-1, minus=-1))),
    "yn": (None, by.of_whole(by.half_difference("yn"))),
    "jve": (None, by.real_only("jve", by.half_difference("jve"))),
    "yve": (None, by.real_only("yve", by.half_difference("yve"))),
    "ive": (
        None,
        by.real_only(
            "ive", lambda v, z, y: (sp.ive(v - 1, z) + sp.ive(v + 1, z)) / 2 - jnp.sign(z) * y
        ),
    ),
    "kve": (None, lambda v, z, y: y - (sp.kve(v - 1, z) + sp.kve(v + 1, z)) / 2),
    "hankel1e": (None, lambda v, z, y: by.half_difference("hankel1e")(v, z, y) - 1j * y),
    "hankel2e": (None, lambda v, z, y: by.half_difference("hankel2e")(v, z, y) + 1j * y),
    "j0": (lambda x, y: -sp.j1(x),),
    "j1": (lambda x, y: (sp.j0(x) - sp.jv(2, x)) / 2,),
    "y0": (lambda x, y: -sp.y1(x),),
    "y1": (lambda x, y: (sp.y0(x) - sp.yv(2, x)) / 2,),
    "i0": (lambda x, y: sp.i1(x),),
    "i1": (lambda x, y: (sp.i0(x) + sp.iv(2, x)) / 2,),
    "i0e": (lambda x, y: sp.i1e(x) - jnp.sign(x) * y,),
    "i1e": (lambda x, y: (sp.i0e(x) + sp.ive(2, x)) / 2 - jnp.sign(x) * y,),
    "k0": (lambda x, y: -sp.k1(x),),
    "k1": (lambda x, y: -(sp.k0(x) + sp.kv(2, x)) / 2,),
    "k0e": (lambda x, y: y - sp.k1e(x),),
    "k1e": (lambda x, y: y - (sp.k0e(x) + sp.kve(2, x)) / 2,),
    "struve": (None, by.struve("struve", 1)),
    "modstruve": (None, by.struve("modstruve", -1)),
    "besselpoly": (
        lambda a, k, v, y: sp.besselpoly(a, k + 1, v - 1) - sp.besselpoly(a, k + 1, v + 1),
        None, None,
    ),
    # integrals of Bessel, Struve and Airy functions
    "itj0y0": (lambda x, j, y: (sp.j0(x), sp.y0(x)),),
    "iti0k0": (lambda x, i, k: (sp.i0(x), sp.k0(x)),),
    "it2j0y0": (
        lambda x, j, y: (by.of_squares(x, -1, lambda x: (1 - sp.j0(x)) / x), -sp.y0(x) / x),
    ),
    "it2i0k0": (
        lambda x, i, k: (by.of_squares(x, 1, lambda x: (sp.i0(x) - 1) / x), -sp.k0(x) / x),
    ),
    "itstruve0": (lambda x, y: sp.struve(0, x),),
    "it2struve0": (lambda x, y: by.away_from(x, 0, -sp.struve(0, x) / x, -2 / math.pi),),
    "itmodstruve0": (lambda x, y: sp.modstruve(0, x),),
    "itairy": (lambda x, *y: (*sp.airy(x)[::2], *sp.airy(-x)[::2]),),
    "airy": (
        lambda z, ai, aip, bi, bip: (aip, z * ai, bip, z * bi),  # 9.2.1
    ),
    "airye": (by.real_only("airye", by.airye),),
    # Kelvin functions: 10.61.3
    "ber": (lambda x, y: sp.berp(x),),
    "bei": (lambda x, y: sp.beip(x),),
    "ker": (lambda x, y: sp.kerp(x),),
    "kei": (lambda x, y: sp.keip(x),),
    "berp": (lambda x, y: -sp.bei(x) - by.away_from(x, 0, y / x, 0),),
    "beip": (lambda x, y: sp.ber(x) - by.away_from(x, 0, y / x, 0.5),),
    "kerp": (lambda x, y: -sp.kei(x) - y / x,),
    "keip": (lambda x, y: sp.ker(x) - y / x,),
    "kelvin": (by.kelvin,),
    # parabolic cylinder and Mathieu functions by x, with their derivatives
    "pbdv": _PARABOLIC,
    "pbvv": _PARABOLIC,
    "pbwa": (None, lambda a, x, y, slope: (slope, (a - x * x / 4) * y)),  # 12.2.3
    "mathieu_cem": (None, None, by.mathieu("mathieu_a", False)),
    "mathieu_sem": (None, None, by.mathieu("mathieu_b", False)),
    "mathieu_modcem1": (None, None, by.mathieu("mathieu_a", True)),
    "mathieu_modcem2": (None, None, by.mathieu("mathieu_a", True)),
    "mathieu_modsem1": (None, None, by.mathieu("mathieu_b", True)),
    "mathieu_modsem2": (None, None, by.mathieu("mathieu_b", True)),
    # gamma and beta functions: 5.2.2, 5.12, 8.8.13, 8.17.20
    "gamma": (lambda x, y: y * sp.psi(x),),
    "gammaln": (lambda x, y: sp.psi(x),),
    "gammasgn": (lambda x, y: jnp.zeros_like(x),),
    "loggamma": (lambda x, y: sp.psi(x),),
    "rgamma": (lambda x, y: by.rgamma_slope(x),),
    "psi": (by.real_only("psi", lambda x, y: by.trigamma(x)),),
    "poch": (by.poch_by_z, lambda z, m, y: y * sp.psi(z + m)),
    "binom": (by.binom(by_n=True), by.binom(by_n=False)),
    "beta": (
        lambda a, b, y: y * (sp.psi(a) - sp.psi(a + b)),
        lambda a, b, y: y * (sp.psi(b) - sp.psi(a + b)),
    ),
    "betaln": (
        lambda a, b, y: sp.psi(a) - sp.psi(a + b),
        lambda a, b, y: sp.psi(b) - sp.psi(a + b),
    ),
    "gammainc": (
        lambda a, x, y: by.gammainc_by_a(a, x),
        lambda a, x, y: by.gamma_density(a, x),
    ),
    "gammaincc": (
        lambda a, x, y: -by.gammainc_by_a(a, x),
        lambda a, x, y: -by.gamma_density(a, x),
    ),
    "gammaincinv": (
        lambda a, p, x: -by.gammainc_by_a(a, x) / by.gamma_density(a, x),
        lambda a, p, x: 1 / by.gamma_density(a, x),
    ),
    "gammainccinv": (
        lambda a, p, x: -by.gammainc_by_a(a, x) / by.gamma_density(a, x),
        lambda a, p, x: -1 / by.gamma_density(a, x),
    ),
    "betainc": (None, None, lambda a, b, x, y: by.beta_density(a, b, x)),
    "betaincc": (None, None, lambda a, b, x, y: -by.beta_density(a, b, x)),
    "betaincinv": (None, None, lambda a, b, p, x: 1 / by.beta_density(a, b, x)),
    "betainccinv": (None, None, lambda a, b, p, x: -1 / by.beta_density(a, b, x)),
    # error functions: 7.2, 7.10.2, 7.19.1
    "erf": (lambda x, y: 2 / by.SQRT_PI * jnp.exp(-x * x),),
    "erfc": (lambda x, y: -2 / by.SQRT_PI * jnp.exp(-x * x),),
    "erfcx": (lambda x, y: 2 * x * y - 2 / by.SQRT_PI,),
    "erfi": (lambda x, y: 2 / by.SQRT_PI * jnp.exp(x * x),),
    "erfinv": (lambda x, y: by.SQRT_PI / 2 * jnp.exp(y * y),),
    "erfcinv": (lambda x, y: -by.SQRT_PI / 2 * jnp.exp(y * y),),
    "dawsn": (lambda x, y: 1 - 2 * x * y,),
    "wofz": (lambda z, y: 2j / by.SQRT_PI - 2 * z * y,),
    "voigt_profile": (
        lambda x, sigma, gamma, y: jnp.real(by.voigt(x, sigma, gamma)),
        None,
        lambda x, sigma, gamma, y: -jnp.imag(by.voigt(x, sigma, gamma)),
    ),
    "ndtr": (lambda x, y: jnp.exp(-x * x / 2) / by.SQRT_2PI,),
    "ndtri": (lambda x, y: by.SQRT_2PI * jnp.exp(y * y / 2),),
    "ndtri_exp": (lambda y, x: by.SQRT_2PI * jnp.exp(y + x * x / 2),),
    "log_ndtr": (lambda x, y: jnp.exp(-x * x / 2 - y) / by.SQRT_2PI,),
    "owens_t": (
        lambda h, a, y: -jnp.exp(-h * h / 2) * sp.erf(a * h / math.sqrt(2)) / (2 * by.SQRT_2PI),
        lambda h, a, y: jnp.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)),
    ),
    # integrals: 6.2, 7.2.7, 8.19.13
    "expi": (lambda x, y: jnp.exp(x) / x,),
    "exp1": (lambda x, y: -jnp.exp(-x) / x,),
    "expn": (
        None,
        lambda n, x, y: jnp.where(
            n == 0, -(1 + 1 / x) * jnp.exp(-x) / x, -sp.expn(jnp.where(n == 0, 1, n) - 1, x)
        ),
    ),
    "sici": (lambda x, si, ci: (by.sinc(x, -1, jnp.sin), jnp.cos(x) / x),),
    "shichi": (lambda x, shi, chi: (by.sinc(x, 1, jnp.sinh), jnp.cosh(x) / x),),
    "fresnel": (
        lambda x, s, c: (jnp.sin(jnp.pi / 2 * x * x), jnp.cos(jnp.pi / 2 * x * x)),
    ),
    "modfresnelp": (lambda x, f, k: by.modified_fresnel(x, k, 1j),),
    "modfresnelm": (lambda x, f, k: by.modified_fresnel(x, k, -1j),),
    "spence": (
        lambda x, y: by.near_zero(  # 25.12.2, and 15.4.1 near one
            x - 1, lambda u: -sp.hyp2f1(1.0, 1.0, 2.0, -u), lambda u: -jnp.log(1 + u) / u
        ),
    ),
    # elliptic integrals, complete by the parameter m, incomplete by both: 19.2.4, 19.2.5;
    # functions by u: table 22.13.1; Carlson's RF: 19.18.1
    "ellipk": (lambda m, y: by.ellipk_slope(m, 1 - m, y),),
    "ellipkm1": (lambda p, y: -by.ellipk_slope(1 - p, p, y),),
    "ellipe": (lambda m, y: by.ellipe_slope(m, y),),
    "ellipkinc": (
        lambda phi, m, y: 1 / jnp.sqrt(1 - m * jnp.sin(phi) ** 2),
        by.incomplete(first=True),
    ),
    "ellipeinc": (
        lambda phi, m, y: jnp.sqrt(1 - m * jnp.sin(phi) ** 2),
        by.incomplete(first=False),
    ),
    "ellipj": (
        lambda u, m, sn, cn, dn, ph: (cn * dn, -sn * dn, -m * sn * cn, dn),
        None,
    ),
    "elliprf": (
        lambda x, y, z, out: -sp.elliprd(y, z, x) / 6,
        lambda x, y, z, out: -sp.elliprd(x, z, y) / 6,
        lambda x, y, z, out: -sp.elliprd(x, y, z) / 6,
    ),
    "agm": (
        lambda a, b, y: by.agm_by_first(a, b, y),
        lambda a, b, y: by.agm_by_first(b, a, y),
    ),
    # hypergeometric functions by z: 13.3.15, 13.3.22, 15.5.1, 16.3.1, 10.46.1
    "hyp0f1": (None, lambda v, z, y: sp.hyp0f1(v + 1, z) / v),
    "hyp1f1": (None, None, lambda a, b, z, y: a / b * sp.hyp1f1(a + 1, b + 1, z)),
    "hyperu": (None, None, lambda a, b, z, y: -a * sp.hyperu(a + 1, b + 1, z)),
    "hyp2f1": (
        None, None, None,
        lambda a, b, c, z, y: a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, z),
    ),
    "wright_bessel": (None, None, lambda a, b, x, y: sp.wright_bessel(a, a + b, x)),
    "log_wright_bessel": (
        None, None, lambda a, b, x, y: jnp.exp(sp.log_wright_bessel(a, a + b, x) - y)
    ),
    "wrightomega": (lambda z, y: y / (1 + y),),  # from y + log(y) = z
    # polynomials and Legendre functions by x: 18.9.15 to 18.9.28, in 18.7.1 to 18.7.10's terms
    "eval_chebyt": (None, by.of_degree(lambda n, x: n * sp.eval_chebyu(n - 1, x))),
    "eval_chebyu": (None, lambda n, x, y: by.chebyshev_u(n, x)),
    "eval_chebyc": (None, by.of_degree(lambda n, x: n * sp.eval_chebys(n - 1, x))),
    "eval_chebys": (None, lambda n, x, y: by.chebyshev_u(n, x / 2) / 2),
    "eval_sh_chebyt": (None, by.of_degree(lambda n, x: 2 * n * sp.eval_sh_chebyu(n - 1, x))),
    "eval_sh_chebyu": (None, lambda n, x, y: 2 * by.chebyshev_u(n, 2 * x - 1)),
    "eval_legendre": (None, lambda n, x, y: by.legendre(n, x)),
    "eval_sh_legendre": (None, lambda n, x, y: 2 * by.legendre(n, 2 * x - 1)),
    "eval_jacobi": (
        None, None, None,
        by.of_degree(
            lambda n, a, b, x: (n + a + b + 1) / 2 * sp.eval_jacobi(n - 1, a + 1, b + 1, x)
        ),
    ),
    "eval_sh_jacobi": (  # whose leading coefficient is 1
        None, None, None,
        by.of_degree(lambda n, p, q, x: n * sp.eval_sh_jacobi(n - 1, p + 2, q + 1, x)),
    ),
    "eval_gegenbauer": (
        None, None, by.of_degree(lambda n, a, x: 2 * a * sp.eval_gegenbauer(n - 1, a + 1, x))
    ),
    "eval_hermite": (None, by.of_degree(lambda n, x: 2 * n * sp.eval_hermite(n - 1, x))),
    "eval_hermitenorm": (None, by.of_degree(lambda n, x: n * sp.eval_hermitenorm(n - 1, x))),
    "eval_laguerre": (None, by.of_degree(lambda n, x: -sp.eval_genlaguerre(n - 1, 1.0, x))),
    "eval_genlaguerre": (
        None, None, by.of_degree(lambda n, a, x: -sp.eval_genlaguerre(n - 1, a + 1, x))
    ),
    "lpmv": (None, None, lambda m, v, x, y: by.lpmv(m, v, x)),
    # distributions: 8.17.5, 8.4.10, 8.2; Abramowitz and Stegun, chapter 26
    "bdtr": (None, None, lambda k, n, p, y: -by.binomial(k, n, p)),
    "bdtrc": (None, None, lambda k, n, p, y: by.binomial(k, n, p)),
    "bdtri": (None, None, lambda k, n, y, p: -1 / by.binomial(k, n, p)),
    "nbdtr": (None, None, lambda k, n, p, y: by.negative_binomial(k, n, p)),
    "nbdtrc": (None, None, lambda k, n, p, y: -by.negative_binomial(k, n, p)),
    "nbdtri": (None, None, lambda k, n, y, p: 1 / by.negative_binomial(k, n, p)),
    "pdtr": (None, lambda k, m, y: -by.poisson(k, m)),
    "pdtrc": (None, lambda k, m, y: by.poisson(k, m)),
    "pdtri": (None, lambda k, y, m: -1 / by.poisson(k, m)),
    "stdtr": (None, lambda df, t, y: by.student(df, t)),
    "stdtrit": (None, lambda df, p, t: 1 / by.student(df, t)),
    "chdtr": (
        lambda v, x, y: by.gammainc_by_a(v / 2, x / 2) / 2,
        lambda v, x, y: by.gamma_density(v / 2, x / 2) / 2,
    ),
    "chdtrc": (
        lambda v, x, y: -by.gammainc_by_a(v / 2, x / 2) / 2,
        lambda v, x, y: -by.gamma_density(v / 2, x / 2) / 2,
    ),
    "chdtri": (
        lambda v, p, x: -by.gammainc_by_a(v / 2, x / 2) / by.gamma_density(v / 2, x / 2),
        lambda v, p, x: -2 / by.gamma_density(v / 2, x / 2),
    ),
    "chndtr": (
        lambda x, df, nc, y: by.noncentral(x, df, nc),
        None,
        lambda x, df, nc, y: -by.noncentral(x, df + 2, nc),
    ),
    "chndtrix": (
        lambda p, df, nc, x: 1 / by.noncentral(x, df, nc),
        None,
        lambda p, df, nc, x: by.noncentral(x, df + 2, nc) / by.noncentral(x, df, nc),
    ),
    "fdtr": (None, None, lambda dfn, dfd, x, y: by.fisher(dfn, dfd, x)),
    "fdtrc": (None, None, lambda dfn, dfd, x, y: -by.fisher(dfn, dfd, x)),
    "fdtri": (None, None, lambda dfn, dfd, p, x: 1 / by.fisher(dfn, dfd, x)),
    "gdtr": (
        lambda a, b, x, y: x * by.gamma_density(b, a * x),
        lambda a, b, x, y: by.gammainc_by_a(b, a * x),
        lambda a, b, x, y: a * by.gamma_density(b, a * x),
    ),
    "gdtrc": (
        lambda a, b, x, y: -x * by.gamma_density(b, a * x),
        lambda a, b, x, y: -by.gammainc_by_a(b, a * x),
        lambda a, b, x, y: -a * by.gamma_density(b, a * x),
    ),
    "gdtrix": (
        lambda a, b, p, x: -x / a,
        lambda a, b, p, x: -by.gammainc_by_a(b, a * x) / (a * by.gamma_density(b, a * x)),
        lambda a, b, p, x: 1 / (a * by.gamma_density(b, a * x)),
    ),
    "gdtria": (
        lambda p, b, x, a: 1 / (x * by.gamma_density(b, a * x)),
        lambda p, b, x, a: -by.gammainc_by_a(b, a * x) / (x * by.gamma_density(b, a * x)),
        lambda p, b, x, a: -a / x,
    ),
    "gdtrib": (
        lambda a, p, x, b: -x * by.gamma_density(b, a * x) / by.gammainc_by_a(b, a * x),
        lambda a, p, x, b: 1 / by.gammainc_by_a(b, a * x),
        lambda a, p, x, b: -a * by.gamma_density(b, a * x) / by.gammainc_by_a(b, a * x),
    ),
    "nrdtrimn": (
        lambda p, std, x, mn: -std * by.SQRT_2PI * jnp.exp(sp.ndtri(p) ** 2 / 2),
        lambda p, std, x, mn: -sp.ndtri(p),
        lambda p, std, x, mn: jnp.ones_like(x),
    ),
    "nrdtrisd": (
        lambda mn, p, x, std: -1 / sp.ndtri(p),
        lambda mn, p, x, std: (
            -(x - mn) / sp.ndtri(p) ** 2 * by.SQRT_2PI * jnp.exp(sp.ndtri(p) ** 2 / 2)
        ),
        lambda mn, p, x, std: 1 / sp.ndtri(p),
    ),
    "tklmbda": (lambda x, k, y: 1 / (y ** (k - 1) + (1 - y) ** (k - 1)), None),
    # statistics and information
    "expit": (lambda x, y: y * (1 - y),),
    "logit": (lambda x, y: 1 / (x * (1 - x)),),
    "log_expit": (lambda x, y: sp.expit(-x),),
    "entr": (lambda x, y: -jnp.log(x) - 1,),
    "rel_entr": (lambda x, y, out: jnp.log(x / y) + 1, lambda x, y, out: -x / y),
    "kl_div": (lambda x, y, out: jnp.log(x / y), lambda x, y, out: 1 - x / y),
    "xlogy": (lambda x, y, out: jnp.log(y), lambda x, y, out: x / y),
    "xlog1py": (lambda x, y, out: jnp.log1p(y), lambda x, y, out: x / (1 + y)),
    "huber": (
        lambda delta, r, y: jnp.maximum(jnp.abs(r) - delta, 0),
        lambda delta, r, y: jnp.clip(r, -delta, delta),
    ),
    "pseudo_huber": (by.pseudo_huber(by_delta=True), by.pseudo_huber(by_delta=False)),
    "boxcox": (
        lambda x, k, y: x ** (k - 1),
        lambda x, k, y: by.boxcox_by_k(jnp.log(x), k, y),
    ),
    "boxcox1p": (
        lambda x, k, y: (1 + x) ** (k - 1),
        lambda x, k, y: by.boxcox_by_k(jnp.log1p(x), k, y),
    ),
    "inv_boxcox": (
        lambda y, k, x: x ** (1 - k),
        lambda y, k, x: by.inverse_boxcox_by_k(y, k, x),
    ),
    "inv_boxcox1p": (
        lambda y, k, x: (1 + x) ** (1 - k),
        lambda y, k, x: by.inverse_boxcox_by_k(y, k, 1 + x),
    ),
    # elementary functions
    "exp2": (lambda x, y: y * math.log(2),),
    "exp10": (lambda x, y: y * math.log(10),),
    "expm1": (lambda x, y: y + 1,),
    "exprel": (lambda x, y: by.exprel_slope(x),),
    "log1p": (lambda x, y: 1 / (1 + x),),
    "powm1": (lambda x, y, out: y * x ** (y - 1), lambda x, y, out: (out + 1) * jnp.log(x)),
    "cbrt": (lambda x, y: 1 / (3 * y * y),),
    "cosm1": (lambda x, y: -jnp.sin(x),),
    "sindg": (lambda x, y: by.DEGREE * sp.cosdg(x),),
    "cosdg": (lambda x, y: -by.DEGREE * sp.sindg(x),),
    "tandg": (lambda x, y: by.DEGREE * (1 + y * y),),
    "cotdg": (lambda x, y: -by.DEGREE * (1 + y * y),),
    "radian": (lambda *_: by.DEGREE, lambda *_: by.DEGREE / 60, lambda *_: by.DEGREE / 3600),
    "round": (lambda x, y: jnp.zeros_like(x),),  # as jnp.round has it
}  # fmt: skip
