#!/bin/sh
# Installs what the build needs and pip cannot bring, where this machine lacks it: a C
# compiler, and the headers of the system's Python. Quiet where nothing is missing.
set -eu
missing=""
command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 || missing="$missing gcc g++"
[ -n "$(sh "$(dirname "$0")/find_pythons.sh")" ] || missing="$missing python3-dev python3-venv"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "== installing$missing"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
else
  echo "jaxc needs:$missing (install them with your system's package manager)" >&2
  exit 1
fi
