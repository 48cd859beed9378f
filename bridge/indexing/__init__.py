"""What `skipbridge index` does: build, refresh, add, report, watch; in threads or Spark."""
