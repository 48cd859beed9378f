"""Makes the metastore match storage and timelines."""
