#!/bin/sh
# make_venv.sh VENV PYTHON JAX: an environment with jaxc built from this checkout.
# Made once; jaxc is installed again when a source file is newer than the last time.
set -eu
venv=$1 python=$2 jax=$3
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
if [ "$(cat "$venv/made-for" 2>/dev/null)" != "$python $jax" ]; then
  echo "== $venv: $python with $jax"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --upgrade pip
  "$venv/bin/python" -m pip install --quiet "$jax"
  echo "$python $jax" > "$venv/made-for"
fi
if [ ! -e "$venv/installed" ] || [ -n "$(find python src include cmake CMakeLists.txt pyproject.toml \
    -newer "$venv/installed" -not -name '*.pyc' -not -type d | head -n 1)" ]; then
  echo "== $venv: building and installing jaxc from this checkout"
  started=$(mktemp)
  "$venv/bin/python" -m pip install --quiet --upgrade-strategy only-if-needed ".[test]" "$jax"
  "$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps .
  mv "$started" "$venv/installed"
fi
