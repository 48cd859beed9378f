"""Compiled from hive_metastore.thrift by the Thrift compiler 0.17.0; not edited by hand.

`thrift --gen py:slots,enum -out .. ../hive_metastore.thrift` (run here; the `-remote` script it adds is not kept).
"""

__all__ = ["constants", "ThriftHiveMetastore", "ttypes"]
