"""Builds and refreshes an index."""
