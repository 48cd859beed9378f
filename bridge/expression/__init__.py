"""Predicates on columns: parsing, binding to a table, bounds, and pruning in three answers."""
