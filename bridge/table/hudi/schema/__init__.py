"""Schemas of a Hudi table and their history."""
