"""The explorer: a server that only reads, and its page."""
