"""Random SQL over random files that are hard to read and to skip rightly, asked of two readers."""
