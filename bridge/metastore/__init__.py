"""The Hive metastore's client, caches, and what its records mean."""
