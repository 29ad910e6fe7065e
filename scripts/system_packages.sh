#!/bin/sh
# Installs what the build needs and pip cannot bring, where this machine lacks it: a C
# compiler, and the headers of the system's Python. Quiet where nothing is missing.
# With "optional" also the libraries that some tests and examples bind to; those tests are
# skipped, with the reason, where they cannot be had.
set -eu
missing=""
optional=""
command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 || missing="$missing gcc g++"
[ -n "$(sh "$(dirname "$0")/find_pythons.sh")" ] || missing="$missing python3-dev python3-venv"
if [ "${1:-}" = optional ]; then
  [ -e /usr/include/gsl/gsl_version.h ] || optional="$optional libgsl-dev"
  [ -e /usr/include/lapacke.h ] || optional="$optional liblapacke-dev"
  [ -e /usr/include/fftw3.h ] || optional="$optional libfftw3-dev"
fi
[ -z "$missing$optional" ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  [ -z "$optional" ] || echo "== without$optional: tests of these libraries are skipped" >&2
  [ -z "$missing" ] && exit 0
  echo "jaxc needs:$missing (install them with your system's package manager)" >&2
  exit 1
fi
install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null
}
echo "== installing$missing$optional"
if [ -n "$missing" ]; then
  apt-get update -qq
  install $missing
fi
if [ -n "$optional" ]; then
  # Lists that are there already may do; without a network this must not take long.
  short="-o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20"
  install $short $optional 2>/dev/null ||
    { apt-get update -qq $short 2>/dev/null && install $short $optional 2>/dev/null; } ||
    echo "== without$optional: tests of these libraries are skipped" >&2
fi
