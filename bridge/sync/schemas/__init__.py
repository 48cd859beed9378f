"""Columns of files, of the metastore and of Spark, and how they may change."""
