"""Apache Hudi tables."""
