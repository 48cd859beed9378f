"""skipbridge: file-level data skipping for tables on object storage, shared by Spark, Trino and
Hive.
"""

__version__ = "0.1.0"
