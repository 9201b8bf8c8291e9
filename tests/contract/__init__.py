"""Suites that every layout inherits: each verb works and is checked against plain rows, or is refused clearly."""
