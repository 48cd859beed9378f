"""Serves Parquet tables of the metastore as Iceberg tables: the REST catalog, planned here."""
