"""Changes of the log: create, add, delete, compact, refresh, index."""
