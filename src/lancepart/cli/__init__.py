"""The command ``lancepart``: tables looked at, loaded and maintained from a terminal, without Spark."""
