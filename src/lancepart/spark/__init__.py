"""The same plans run on Spark's executors."""
