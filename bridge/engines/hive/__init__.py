"""Hive: its predicates (SearchArgument) and semantics."""
