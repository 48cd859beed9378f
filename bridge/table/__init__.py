"""Table formats: snapshots of partitions and slices."""
