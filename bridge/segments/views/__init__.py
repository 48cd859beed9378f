"""Materialised hot columns of a table of segments, kept as sorted Parquet files."""
