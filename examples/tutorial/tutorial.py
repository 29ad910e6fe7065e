"""JAX's tutorial on foreign functions with C in place of C++: README.md leads through it.

Run it: ``python tutorial.py``. Each section prints one line, "ok" with what was shown, or
"skip" with the reason. Everything is compared with jax.numpy.
"""

from __future__ import annotations

import os

# Four CPU devices for the section on sharding; before JAX is imported.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import advanced
import basics
import plain
from steps import SkipError, sections_of


def main() -> None:
    for module in (basics, advanced, plain):
        for title, function in sections_of(module):
            try:
                print(f"ok    {title}: {function()}", flush=True)
            except SkipError as reason:
                print(f"skip  {title}: {reason}", flush=True)


if __name__ == "__main__":
    main()
