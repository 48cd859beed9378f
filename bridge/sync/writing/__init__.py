"""Writes to the metastore, each decided on the record that it changes."""
