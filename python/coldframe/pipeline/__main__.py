"""`spark-submit .../coldframe/pipeline/__main__.py SRC DST ...` and `python -m coldframe.pipeline SRC DST
...`.
"""

from __future__ import annotations

import argparse
import sys

from coldframe.cli.migrate import EPILOG, add_arguments, run
from coldframe.terminal import printed_safely


def main() -> int:
    """Runs `migrate` with the process's arguments."""
    parser = argparse.ArgumentParser(
        prog="coldframe-migrate", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    with printed_safely():
        return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
