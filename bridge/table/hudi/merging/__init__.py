"""Merges base files and logs of a Hudi table."""
