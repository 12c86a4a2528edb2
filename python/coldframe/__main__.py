"""`python -m coldframe` is the command `coldframe`."""

import sys

from coldframe.entry import main

if __name__ == "__main__":
    sys.exit(main())
