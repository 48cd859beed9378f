"""Answers without reading files: statistics, aggregates, system tables, top n."""
