"""File groups and slices of a Hudi table."""
