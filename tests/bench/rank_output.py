"""One rank of the output benchmark: LINES lines of 80 bytes, each with its rank and its own number.

rank_output.py LINES line|block     line: one write for each line; block: 8192-byte writes, which cut lines
"""
import os
import sys

LETTERS = b"abcdefghijklmnopqrstuvwxyz" * 4
BLOCK = 8192


def line(rank, number):
    """80 bytes with the newline; check_output in launch.py takes them apart again."""
    return b"@R%03d L%07d %s\n" % (rank, number, LETTERS[number % 26 :][:64])


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main():
    count, mode = int(sys.argv[1]), sys.argv[2]
    rank = int(os.environ["RANK"])
    lines = [line(rank, number) for number in range(count)]
    if mode == "line":
        pieces = lines
    else:
        text = b"".join(lines)
        pieces = [text[at : at + BLOCK] for at in range(0, len(text), BLOCK)]
    for piece in pieces:
        write_all(piece)


if __name__ == "__main__":
    main()
