"""Hudi's files: slices, blocks of logs, HFiles, and the records in them, as Arrow."""
