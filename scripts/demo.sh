#!/bin/bash
# demo.sh: the main job on this machine: four ranks of an unmodified torch.distributed program.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
if [ ! -x .venv/bin/python ]; then
  echo "demo: the workers need the torch wheel; run make demo without TRAINING=OFF" >&2
  exit 1
fi
command=(build/bin/hvdrun -np 4 .venv/bin/python tests/programs/ddp_train.py)
echo "==> ${command[*]}"
rc=0
"${command[@]}" || rc=$?
echo "==> hvdrun ended with exit code $rc"
exit "$rc"
