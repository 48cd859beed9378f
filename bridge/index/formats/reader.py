"""What reads statistics from files of one format; Parquet's footers have their own way.

The law of every reader: what it says of a column is true of the values that Hive reads from the
file. What it cannot tell for sure it leaves unknown, and the file is read.

Hive finds the columns of these formats by name or by their place, as it is set up: each stored
column says where it lies (`PhysicalColumn.position`), and only where name and place agree with the
table is it used, see `bridge.index.column_resolution`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bridge.index.footer import FileStatistics
from bridge.index.formats import orc
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.table.formats import ORC

Reader = Callable[[Storage, str, int], FileStatistics]
READERS: Mapping[str, Reader] = {ORC: ChildReader(orc.read).read}
"""By the format's name; called with the storage, a file's URI and its size.

ORC is read in a child process: Arrow's reader ends its process over some damaged files.
"""
