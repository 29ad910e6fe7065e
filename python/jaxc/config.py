"""Settings of the process: ``jaxc.config.forbid_gather = True``."""

from __future__ import annotations

#: A core axis that is sharded is an error in automatic mode, and not gathered.
forbid_gather: bool = False
