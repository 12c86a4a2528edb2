"""`python -m coldframe` is the command `coldframe`."""

import sys

from coldframe.cli import main

if __name__ == "__main__":
    sys.exit(main())
