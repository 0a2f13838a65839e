"""check_wheels.py REQUIREMENTS: are all distributions that the file lists installed in this environment,
and all that are installed whole? Ends with 1 and a sentence if not.

An interrupted pip can leave files short or missing that a later `pip install` takes for installed;
every wheel's RECORD names its files with their sizes.
"""
import importlib.metadata
import pathlib
import sys


def damaged_files(distribution):
    for entry in distribution.files or []:
        path = pathlib.Path(distribution.locate_file(entry))
        if entry.size is None or path.suffix == ".pyc":
            continue
        if not path.is_file() or path.stat().st_size != entry.size:
            yield path


def wanted(path):
    lines = (line.partition("#")[0].strip() for line in pathlib.Path(path).read_text().splitlines())
    return {line.partition("==")[0].lower() for line in lines if line}


def main():
    installed = list(importlib.metadata.distributions())
    names = {d.metadata["Name"].lower() for d in installed if d.metadata["Name"]}
    missing = wanted(sys.argv[1]) - names
    if missing:
        sys.exit(f"check_wheels: not installed: {', '.join(sorted(missing))}")
    for distribution in installed:
        for path in damaged_files(distribution):
            sys.exit(f"check_wheels: {path} is not as its wheel has it")


if __name__ == "__main__":
    main()
