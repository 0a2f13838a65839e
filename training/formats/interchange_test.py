#!/usr/bin/env python3
"""Do the packages of others read our files, and we theirs?

interchange_test.py PROGRAM safetensors|tensorboard

PROGRAM is formats_interchange of this build. Ends with 77, and says so, when the package is missing.
"""
import importlib.util
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def written_by(program, folder):
    code, _, error = run(program, "write", folder)
    assert code == 0, error


def check_our_tensors(folder):
    """What write_tensors() of interchange_main.cc wrote, through the package."""
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file

    path = folder / "m.safetensors"
    tensors = load_file(path)
    expected = {
        "rng": numpy.array([0, 1, 255], numpy.uint8),
        "head.weight": numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4) - numpy.float32(3.5),
        "moment": numpy.array([1e-300, -0.0, 0.1]),
        "step": numpy.array(-1234567890123),
        "empty": numpy.zeros((0, 4), numpy.float32),
    }
    assert tensors.keys() == expected.keys(), tensors.keys()
    for name, values in expected.items():
        assert tensors[name].dtype == values.dtype and tensors[name].shape == values.shape, name
        assert tensors[name].tobytes() == values.tobytes(), name
    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"epoch": "7", "text": 'a "b" é'}, file.metadata()
    return expected


def check_their_tensors(program, folder, tensors):
    from safetensors.numpy import save_file

    path = folder / "theirs.safetensors"
    save_file(tensors, path, metadata={"a": "é"})
    code, text, error = run(program, "print", path)
    assert code == 0, error
    read = json.loads(text)
    assert read["metadata"] == {"a": "é"}, read["metadata"]
    assert read["tensors"].keys() == tensors.keys()
    names = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}
    for name, values in tensors.items():
        tensor = read["tensors"][name]
        assert tensor["dtype"] == names[str(values.dtype)], tensor
        assert tensor["shape"] == list(values.shape), tensor
        assert tensor["bytes"] == values.tobytes().hex(), name


def check_same_refusals(program, folder):
    """Files that the package refuses, we refuse."""
    from safetensors import safe_open

    good = b'{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}'
    contents = [b"", struct.pack("<Q", len(good)) + good + b"xyzz",
                struct.pack("<Q", len(good)) + good + b"xy", struct.pack("<Q", 1 << 62) + good]
    for old, new in ((b"U8", b"U7"), (b"[3]", b"[4]"), (b"[0,3]", b"[1,3]"), (b"[0,3]", b"[3,0]"),
                     (b"[3]", b"[-3]"), (b"[0,3]", b"[0,9]"), (b"}}", b"}")):
        header = good.replace(old, new)
        contents.append(struct.pack("<Q", len(header)) + header + b"xyz")
    path = folder / "bad.safetensors"
    for content in contents:
        path.write_bytes(content)
        try:
            with safe_open(path, framework="np"):
                raise AssertionError(f"the package opens {content}")
        except AssertionError:
            raise
        except Exception as error:  # the package's own type, of another name in each version
            print(f"theirs: {error}")
        code, _, error = run(program, "print", path)
        assert code == 1 and error.count("\n") == 1, (content, code, error)
        print(f"ours:   {error.strip()}")


def safetensors(program, folder):
    written_by(program, folder)
    tensors = check_our_tensors(folder)
    check_their_tensors(program, folder, tensors)
    check_same_refusals(program, folder)


def tensorboard(program, folder):
    """What write_events() of interchange_main.cc wrote, through TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

    written_by(program, folder)
    events = EventAccumulator(str(folder), size_guidance={SCALARS: 0})
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["loss/total", "norm", "zero"], events.Tags()
    loss = events.Scalars("loss/total")
    assert [event.step for event in loss] == list(range(1000))
    for step, event in enumerate(loss):
        assert event.wall_time == 1700000000 + 0.1 * step, event
        assert math.isclose(event.value, 10 / (step + 1), rel_tol=1e-7), event
    assert {event.value for event in events.Scalars("zero")} == {0.0}
    assert events.Scalars("norm")[3].value == math.inf
    assert events.FirstEventTimestamp() == 1700000000


def main():
    program, package = sys.argv[1:]
    if importlib.util.find_spec(package) is None:
        print(f"SKIPPED: {sys.executable} has no package {package}; pip install {package}")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        {"safetensors": safetensors, "tensorboard": tensorboard}[package](
            program, pathlib.Path(folder))
    print(f"ok: {package}")


if __name__ == "__main__":
    main()
