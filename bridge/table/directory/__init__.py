"""Directory tables: the files in the partition directories are the table."""
