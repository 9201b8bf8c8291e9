"""``python -m lancepart.cli``: the command, where it is not on the path."""

from lancepart.cli.app import main

if __name__ == "__main__":
    main()
