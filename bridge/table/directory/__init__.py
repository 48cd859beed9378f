"""Directory tables: the files in the partition directories are the table."""

from __future__ import annotations

from bridge.table.directory.format import DirectoryFormat

TABLE_FORMAT = DirectoryFormat()
