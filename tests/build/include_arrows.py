#!/usr/bin/env python3
"""Do the includes follow the dependency arrows of docs/ARCHITECTURE.md?

  base <- proto <- {launcher, agent, runtime};  runtime <- training;  launcher and agent never meet.
  base <- exporter, which meets none of them.
  grpcpp and generated services only in *_edge and *_link files; CUDA and NCCL only in nccl_* files and
  .cu/.cuh; torch only in training/ and runtime/gradient_sync*. Tests beside their source follow the
  rules of the file that they test, and may use tests/support besides; a *_process_test runs a whole
  program and speaks gRPC to it as its other side would.

include_arrows.py ROOT first proves on made-up violations that it finds them, then reads the tree. It
ends with 1 and a line for each violation.
"""
import pathlib
import re
import sys
import tempfile

MAY_INCLUDE = {
    "base": {"base"},
    "proto": {"proto", "base"},
    "launcher": {"launcher", "proto", "base"},
    "agent": {"agent", "proto", "base"},
    "exporter": {"exporter", "base"},
    "runtime": {"runtime", "proto", "base"},
    "training": {"training", "runtime", "proto", "base"},
}
SUFFIXES = {".h", ".hpp", ".cc", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GRPC = re.compile(r"grpc(pp|\+\+)?/|.*\.grpc\.pb\.h$")
CUDA = re.compile(r"(nccl|cuda|cuda_[a-z0-9_]+|cublas\w*|cudnn\w*|cub|thrust|nvml|nvjpeg)(\.h$|/)")
TORCH = re.compile(r"(torch|ATen|c10)/")


def tested_stem(path):
    return re.sub(r"_test$", "", path.stem)


def may_use_grpc(path):
    return tested_stem(path).endswith(("_edge", "_link")) or path.stem.endswith("_process_test")


def may_use_cuda(path):
    return path.suffix in {".cu", ".cuh"} or tested_stem(path).startswith("nccl_")


def may_use_torch(path):
    return path.parts[0] == "training" or (
        path.parts[0] == "runtime" and path.name.startswith("gradient_sync")
    )


RESTRICTED = [
    (GRPC, may_use_grpc, "gRPC belongs to *_edge and *_link files"),
    (CUDA, may_use_cuda, "CUDA and NCCL belong to nccl_* files and .cu files"),
    (TORCH, may_use_torch, "torch belongs to training/ and runtime/gradient_sync*"),
]


def folder_of(root, path, name):
    """The project folder that an include leads into; None if it leads out of the project."""
    if name.startswith("hvdrun/v1/"):
        return "proto"
    if name.startswith("hvdrun/"):
        return "runtime"  # its public headers, runtime/include/hvdrun
    beside = (root / path.parent / name).resolve()
    if beside.is_file() and beside.is_relative_to(root):
        return beside.relative_to(root).parts[0]
    first = name.split("/")[0]
    return first if first in MAY_INCLUDE or first == "tests" else None


def violation(root, path, name):
    for pattern, is_allowed, rule in RESTRICTED:
        if pattern.match(name) and not is_allowed(path):
            return rule
    target = folder_of(root, path, name)
    if target == "tests" and path.stem.endswith("_test") and name.startswith("tests/support/"):
        return None
    if target is not None and target not in MAY_INCLUDE[path.parts[0]]:
        return f"{path.parts[0]}/ must not include {target}/"
    return None


def source_files(root):
    for folder in MAY_INCLUDE:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SUFFIXES and file.is_file():
                yield file.relative_to(root)


def violations(root):
    """Lines for people, and the number of files read."""
    found, count = [], 0
    for path in source_files(root):
        count += 1
        text = (root / path).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            match = INCLUDE.match(line)
            rule = match and violation(root, path, match[2])
            if rule:
                found.append(f"{path}:{number}: {match[2]}: {rule}")
    return found, count


SEEDED = {  # file, its include, whether that is a violation
    ("base/a.h", '"proto/worker_env.h"'): True,
    ("base/b.h", '"hvdrun/v1/agent.pb.h"'): True,
    ("base/c.h", '"base/a.h"'): False,
    ("proto/a.cc", '"launcher/plan.h"'): True,
    ("launcher/a.cc", '"agent/jobs.h"'): True,
    ("launcher/b_test.cc", '"agent/jobs.h"'): True,
    ("launcher/c_test.cc", '"tests/support/pipe.h"'): False,
    ("launcher/d.cc", '"tests/support/pipe.h"'): True,
    ("launcher/e.cc", "<grpcpp/grpcpp.h>"): True,
    ("launcher/e_link.cc", "<grpcpp/grpcpp.h>"): False,
    ("agent/f_edge_test.cc", '"hvdrun/v1/agent.grpc.pb.h"'): False,
    ("agent/f_process_test.cc", "<grpcpp/grpcpp.h>"): False,
    ("agent/f_process.cc", "<grpcpp/grpcpp.h>"): True,
    ("agent/g.cc", '"hvdrun/v1/agent.grpc.pb.h"'): True,
    ("agent/shim/h.cc", '"../../launcher/plan.h"'): True,
    ("agent/shim/i.cc", '"hvdrun/v1/shim.pb.h"'): False,
    ("exporter/j.cc", '"agent/jobs.h"'): True,
    ("runtime/j.cc", "<nccl.h>"): True,
    ("runtime/k.cc", "<cuda_runtime.h>"): True,
    ("runtime/nccl_l.cc", "<nccl.h>"): False,
    ("runtime/kernels/m.cu", "<cuda_runtime.h>"): False,
    ("runtime/n.cc", "<torch/torch.h>"): True,
    ("runtime/gradient_sync.cc", "<torch/torch.h>"): False,
    ("runtime/o.cc", '"training/trainer.h"'): True,
    ("training/p.cc", '"hvdrun/communicator.h"'): False,
    ("training/q.cc", "<ATen/ATen.h>"): False,
    ("training/r.cc", '"agent/jobs.h"'): True,
}


def prove_it_finds_violations():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for (path, include), _ in [(("launcher/plan.h", "<string>"), False), *SEEDED.items()]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"#include {include}\n", encoding="utf-8")
        found = {line.split(":")[0] for line in violations(root)[0]}
    expected = {path for (path, _), is_violation in SEEDED.items() if is_violation}
    if found != expected:
        sys.exit(f"include_arrows does not work: missed {sorted(expected - found)}, "
                 f"blamed {sorted(found - expected)}")  # fmt: skip


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    prove_it_finds_violations()
    found, count = violations(root)
    if count == 0:
        sys.exit(f"include_arrows: no source files under {root}")
    if found:
        sys.exit("\n".join(found))
    print(f"{count} files follow the arrows")


if __name__ == "__main__":
    main()
