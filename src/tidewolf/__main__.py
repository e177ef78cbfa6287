"""`python -m tidewolf` is the command `tidewolf`, for where scripts are not on the path."""

import sys

from tidewolf.cli import main

if __name__ == "__main__":
    sys.exit(main())
