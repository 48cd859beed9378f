"""The timeline of a Hudi table."""
