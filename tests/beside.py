"""Runs two commands side by side: python tests/beside.py BESIDE SHOWN

Both are shell commands. The output of SHOWN appears at once, the output of BESIDE at the end. Exit 1 if
either fails. Compilers use all processors while tests often wait for servers, so together they take little
longer than either alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile


def main(beside: str, shown: str) -> int:
    with tempfile.TemporaryFile("w+") as output:
        background = subprocess.Popen(beside, shell=True, stdout=output, stderr=subprocess.STDOUT)
        try:
            codes = [subprocess.call(shown, shell=True), background.wait()]
        except KeyboardInterrupt:
            # Both commands also get an interrupt.
            background.wait()
            return 1
        output.seek(0)
        shutil.copyfileobj(output, sys.stdout)
    for command, code in zip((shown, beside), codes, strict=True):
        if code != 0:
            print(f"failed: {command}")
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
