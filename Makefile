# make demo    a C file becomes a JAX function, step by step
# make test    all tests, in C and Python, on every Python and JAX that is meant
# make bench   everything measured, against everything else; writes docs/benchmarks.md
# make lint    ruff, mypy and clang-format
# make sanitize  the C tests under sanitizers and valgrind
# make fuzz    each fuzz target for FUZZ_SECONDS (60); see docs/fuzzing.md
# Each sets up what it needs; nothing has to be installed before but Python and make.
SHELL := /bin/sh
VENVS := .venv

.PHONY: demo test bench lint clean sanitize fuzz
.DEFAULT_GOAL := demo

demo: .best
	@.venv/best/bin/python examples/demo.py

test: .all
	@$$(ls -d .venv/py3.*/bin/python .venv/best/bin/python | head -n 1) scripts/run_tests.py

bench: .best
	@[ .venv/best/bench -nt pyproject.toml ] || \
	  .venv/best/bin/python -m pip install --quiet ".[bench]" || \
	  for package in warp-lang numba scipy matplotlib; do \
	    .venv/best/bin/python -m pip install --quiet $$package || \
	      echo "== no $$package: its columns say why"; done
	@touch .venv/best/bench
	@.venv/best/bin/python bench/bench.py --write

lint: .best
	@.venv/best/bin/python -m pip install --quiet ruff mypy
	@.venv/best/bin/ruff check . && .venv/best/bin/ruff format --check .
	@.venv/best/bin/mypy

sanitize: .system
	@$$(sh scripts/find_pythons.sh | head -n 1 | cut -d' ' -f2) scripts/sanitize.py

fuzz: .system
	@$$(sh scripts/find_pythons.sh | head -n 1 | cut -d' ' -f2) scripts/fuzz.py

clean:
	rm -rf .venv build dist

.PHONY: .system .best .all
.system:
	@sh scripts/system_packages.sh

# The newest Python with the newest JAX.
.best: .system
	@sh scripts/make_venv.sh .venv/best \
	  "$$(sh scripts/find_pythons.sh | head -n 1 | cut -d' ' -f2)" jax

# And Python 3.11 with the JAX that it is meant with, where there is one.
.all: .best
	@sh scripts/system_packages.sh optional
	@python=$$(sh scripts/find_pythons.sh | grep '^3\.11 ' | cut -d' ' -f2); \
	if [ -n "$$python" ]; then sh scripts/make_venv.sh .venv/py3.11 "$$python" jax==0.10.2; \
	else echo "no Python 3.11 here: its tests are left out"; fi
