"""Rewrites the files of one group, and checks the rows."""
