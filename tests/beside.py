"""Runs two commands side by side: python tests/beside.py BESIDE SHOWN

Both are lines of a shell. What SHOWN prints is seen at once, what BESIDE prints at the end. Exit 1 if one of
them fails. Compilers want all processors, tests often wait for servers: together they take little longer than
either.
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
            # Both have got it as well.
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
