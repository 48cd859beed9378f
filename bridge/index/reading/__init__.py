"""Reads an index: local copies, columns, and which entries to trust."""
