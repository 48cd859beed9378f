"""What makes Hive skip files: Java classes for its read path, and what puts them to use."""
