#!/bin/bash
# deps.sh [SECTION...]: installs the packages of packages.txt that are missing (default: build test).
# Says nothing when all are there. Needs root or a sudo that asks for nothing; otherwise it prints the
# one line to run and ends with 1.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

wanted() {  # the packages of the sections named
  local section='' line
  while read -r line; do
    line=${line%%#*}
    line=${line//[[:space:]]/}
    case $line in
      '') ;;
      \[*) section=${line//[\[\]]/} ;;
      *) if [[ " $* " == *" $section "* ]]; then echo "$line"; fi ;;
    esac
  done < packages.txt
}

if ! command -v dpkg-query >/dev/null; then
  echo "deps: this is not Debian (no dpkg-query); install what packages.txt lists, then run the steps that follow (make build TRAINING=OFF)" >&2
  exit 1
fi
[ $# -gt 0 ] || set -- build test
missing=()
for package in $(wanted "$@"); do
  state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $state == ?i* ]] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    echo "deps: ${#missing[@]} packages are missing; run this line as root, then try again:" >&2
    echo "apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
fi
echo "==> installing ${#missing[@]} Debian packages: ${missing[*]}"
"${as_root[@]}" apt-get -qq update
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "${missing[@]}"
