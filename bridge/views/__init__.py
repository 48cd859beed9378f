"""Materialised hot columns: some columns of a table of segments, kept as sorted Parquet files."""
