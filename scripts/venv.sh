#!/bin/bash
# venv.sh: .venv with what requirements.txt lists, made with Debian's python3 and the pip configuration
# of the machine; `venv.sh test`: .venv-test with what requirements-test.txt lists. Says nothing when it
# is complete; finishes or remakes one that an interrupted run left.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
here=$PWD
python=/usr/bin/python3
case "${1:-}" in
  '') venv=.venv requirements=requirements.txt what='the torch wheel' instead=', or build without it: make build TRAINING=OFF' ;;
  test) venv=.venv-test requirements=requirements-test.txt what='packages for the tests' instead='' ;;
  *) echo "venv: $1 is not known; give nothing or test" >&2; exit 2 ;;
esac
stamp=$venv/.complete  # holds the requirements it was made from

exec 9<"$requirements"
flock 9  # two makes at once: the second waits, then finds it complete

is_usable() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import pip' 2>/dev/null; }
is_here() { [ "$("$venv/bin/python" -c 'import sys; print(sys.prefix)')" = "$here/$venv" ]; }
is_complete() { cmp -s "$requirements" "$stamp" && is_usable; }

require_space() {  # GB, folder
  local free
  free=$(df --output=avail -B 1000000000 "$2" | tail -1)
  if [ "$free" -lt "$1" ]; then
    echo "venv: $2 has $free GB free and $what needs $1 GB there; make room$instead" >&2
    exit 1
  fi
}

fill() {
  is_usable && is_here || { rm -rf "$venv" && "$python" -m venv "$venv"; }
  "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
    --requirement "$requirements" && "$venv/bin/python" scripts/check_wheels.py "$requirements"
}

give_up() {
  echo "venv: pip could not install $what (its words are above); check the network and pip's configuration$instead" >&2
  exit 1
}

if is_complete; then exit 0; fi
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  echo "venv: $python cannot make virtual environments; install the package python3-venv (make deps)" >&2
  exit 1
fi
if [ "$venv" = .venv ]; then
  require_space 8 .
  require_space 4 "${TMPDIR:-/tmp}"
  echo "==> libtorch: the wheel $(grep '^torch' requirements.txt) with CUDA and NCCL into .venv (about a minute, 4.6 GB)"
fi
begin=$SECONDS
was_there=$([ -d "$venv" ] && echo yes || true)
if ! fill; then
  [ -n "$was_there" ] || give_up
  echo "==> the $venv that was there cannot be finished; making it anew"
  rm -rf "$venv"
  fill || give_up
fi
cp "$requirements" "$stamp"
echo "==> $venv is complete ($((SECONDS - begin)) s)"
