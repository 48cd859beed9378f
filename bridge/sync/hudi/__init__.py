"""Sync of Hudi tables."""
