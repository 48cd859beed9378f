"""Parquet: everything that is known of the format."""
