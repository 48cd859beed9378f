"""Apache Hudi tables: a snapshot is the timeline at one instant."""
