#!/bin/bash
# man_page.sh PROGRAM PAGE [COMMAND]...: writes the man page of a program from its --help and deploy/man/NAME.h2m.
# COMMAND: words of the program that have a --help of their own, several in one argument, as in 'ca issue'.
set -euo pipefail
program=$1 page=$2
shift 2
name=$(basename "$program")
include=$page.h2m
trap 'rm -f "$include"' EXIT
cp "$(dirname "$0")/$name.h2m" "$include"
for command in "$@"; do
  # Without a fill, and with every hyphen one that can be pasted.
  # shellcheck disable=SC2086  # a command of several words
  help=$("$program" $command --help)
  printf '\n[%s]\n.nf\n%s\n.fi\n' "$name $command" "$(sed 's/\\/\\e/g; s/-/\\-/g; s/^\([.'\'']\)/\\\&\1/' <<<"$help")" >>"$include"
done
help2man --no-info --section=8 --include="$include" --output="$page" "$program"
