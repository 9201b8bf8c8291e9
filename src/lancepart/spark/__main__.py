"""``python -m lancepart.spark``: jobs from the command line."""

from lancepart.spark.jobs import main

if __name__ == "__main__":
    main()
