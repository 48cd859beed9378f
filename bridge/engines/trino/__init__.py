"""Trino: its predicates (TupleDomain, expressions) and semantics."""
