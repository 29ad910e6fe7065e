"""Functions of the GNU Scientific Library in JAX, from their prototypes.

Needs GSL (on Debian: apt install libgsl-dev), jaxc and JAX.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import jaxc

jax.config.update("jax_enable_x64", True)

# What takes and returns numbers, or fills arrays, needs no C file. An int that is returned
# beside an output array is a status. nmin and nmax are in no input array, so they are keywords.
gsl = jaxc.bind(
    """
    double gsl_sf_bessel_J0(double x);
    double gsl_sf_bessel_J1(double x);
    int gsl_sf_bessel_Jn_array(int nmin, int nmax, double x, double r[nmax - nmin + 1]);
    """,
    "gsl",
)
j0, j1 = gsl.gsl_sf_bessel_J0, gsl.gsl_sf_bessel_J1


# A library has no derivatives; here is one: J0' = -J1.
@j0.defjvp
def j0_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (d_x,) = primals, tangents
    return j0(x), -j1(x) * d_x


# What takes callbacks or handles, or needs its error handler turned off first, has a small C
# file over it. Without gsl.c a bad argument would end this process.
small = jaxc.load(Path(__file__).with_name("gsl.c"), libraries=["gsl", "gslcblas"])


def main() -> None:
    x = jnp.linspace(0.5, 10, 5)
    print("J0(x)       ", j0(x))
    print("J0'(x)      ", jax.vmap(jax.grad(j0))(x))
    print("J0(1)..J3(1)", gsl.gsl_sf_bessel_Jn_array(1.0, nmin=0, nmax=3))
    value, bound = small.bessel_k0(x)
    print("K0(x)       ", value, "within", bound.max())
    print("Debye integral of order 3:", small.debye(3.0, x))
    try:
        jax.block_until_ready(small.bessel_k0(-1.0))
    except jax.errors.JaxRuntimeError as error:
        print("K0(-1):", error)


if __name__ == "__main__":
    main()
