"""Engines' predicates and types, translated."""
