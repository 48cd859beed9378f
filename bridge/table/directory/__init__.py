"""Directory tables: a table's files are what its partitions' directories hold."""

from __future__ import annotations

from bridge.table.directory.format import DirectoryFormat

TABLE_FORMAT = DirectoryFormat()
