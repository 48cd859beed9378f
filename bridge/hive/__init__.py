"""Hive: the jar of its hooks, a client of HiveServer2, and what `doctor` checks there."""
