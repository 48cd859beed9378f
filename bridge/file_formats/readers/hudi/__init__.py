"""Hudi's files: blocks of logs, HFiles, and the records in them, as Arrow."""
