"""petrv2 verify against the reference, field by field, on small images in fp64.

parity_test.py PETRV2: for each case both write their JSON file, which compare.py then compares."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CASES = {
    "R50 without neck": ("--config", "petrv2_r50_c5_256x704", "--bn3-scale", "0.25"),
    "flash R50 with denoising": ("--config", "petrv2_r50_gridmask_p4_704x256_dn_flash_nuim", "--bn3-scale", "0.25"),
    "V2-99 with denoising": ("--config", "petrv2_vovnet_gridmask_p4_800x320_dn"),
}
SIZE = ("--size", "64x96", "--queries", "20", "--precision", "fp64", "--device", "cpu")


def differs(name, words, petrv2, folder):
    files = folder / "cpp.json", folder / "reference.json"
    for command, file in (([petrv2, "verify"], files[0]), ([sys.executable, HERE / "dump.py"], files[1])):
        done = subprocess.run(
            [*command, *words, *SIZE, "--json", file],
            capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            print(f"{name}: {command[-1]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
            return True
    compared = subprocess.run([sys.executable, HERE / "compare.py", *files], capture_output=True, text=True)
    print(f"{name}: {compared.stdout.splitlines()[-1] if compared.stdout else compared.stderr}")
    if compared.returncode != 0:
        print(compared.stdout, compared.stderr)
    return compared.returncode != 0


def main():
    with tempfile.TemporaryDirectory(prefix="petrv2-parity-") as folder:
        failed = [name for name, words in CASES.items() if differs(name, words, sys.argv[1], pathlib.Path(folder))]
    sys.exit(f"differs: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
