"""What ``spark-submit`` is given to run a job: a script whose directory hides no module of Python's own."""

from lancepart.spark.jobs import main

if __name__ == "__main__":
    main()
