"""``python -m lancepart.spark`` and ``spark-submit …/lancepart/spark/__main__.py``: jobs from the command line."""

from lancepart.spark.jobs import main

if __name__ == "__main__":
    main()
