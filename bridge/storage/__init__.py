"""One port over local disks, object stores and HDFS."""
