"""Merges the answers of several versions of Hive: one line for equal answers, with the versions that gave
them.

usage: merge.py 2.3=FILE 3.1=FILE 4.1=FILE
"""

import sys


def main() -> None:
    answers: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for argument in sys.argv[1:]:
        version, path = argument.split("=", 1)
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                reader, own, wanted, *values = line.rstrip("\n").split("\t")
                texts = answers.setdefault((reader, own, wanted), {})
                texts.setdefault("\t".join(values), []).append(version)
    for pair, texts in answers.items():
        for values, versions in texts.items():
            print("\t".join([*pair, ",".join(versions), values]))


main()
