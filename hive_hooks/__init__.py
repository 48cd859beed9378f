"""Hive hooks that skip files: Java classes for Hive's read path, and their build."""
