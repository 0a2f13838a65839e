#!/bin/bash
# demo.sh: the main job on this machine: four ranks train a small PETRv2 on a made-up data set.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
if [ ! -x build/bin/petrv2 ]; then
  echo "demo: the trainer needs the torch wheel; run make demo without TRAINING=OFF" >&2
  exit 1
fi
show() {
  echo "==> $*"
  "$@"
}
folder=build/demo
rm -rf "$folder"
show build/bin/petrv2 synth --out "$folder" --records
rc=0
show build/bin/hvdrun -np 4 -H localhost:4 build/bin/petrv2 train --config tiny --data "$folder/records" \
  --epochs 8 --log-every 12 --json "$folder/steps.json" || rc=$?
echo "==> hvdrun ended with exit code $rc"
[ "$rc" -eq 0 ] || exit "$rc"
/usr/bin/python3 - "$folder/steps.json" <<'P'
import json, sys
losses = [json.loads(line)["loss"]["total"] for line in open(sys.argv[1])]
print(f"==> loss of the first step {losses[0]:.2f}, of the last {losses[-1]:.2f}; the same weights on all ranks")
P
echo "==> try next: build/bin/hvdrun -np 4 .venv/bin/python tests/programs/ddp_train.py   (any torch script, unchanged)"
