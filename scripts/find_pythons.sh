#!/bin/sh
# Prints the Python interpreters of this machine that are 3.11 or newer and can make a
# virtual environment and build an extension, one for each version, newest first:
# "3.13 /path/to/python".
set -u
candidates=""
for minor in 19 18 17 16 15 14 13 12 11; do
  candidates="$candidates python3.$minor"
done
for folder in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/* "$HOME"/.local/share/uv/python/*; do
  [ -x "$folder/bin/python" ] && candidates="$candidates $folder/bin/python"
done
for python in $candidates python3; do
  command -v "$python" >/dev/null 2>&1 || continue
  "$python" - <<'PYTHON' 2>/dev/null
import os, sys, sysconfig
import ensurepip, venv
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
if sys.version_info >= (3, 11) and os.path.exists(header) and sys.implementation.name == "cpython":
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        print("%d.%d %s" % (*sys.version_info[:2], sys.executable))
PYTHON
done | sort -t. -k2,2nr -s | awk '!seen[$1]++'
