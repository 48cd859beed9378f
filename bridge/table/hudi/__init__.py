"""Apache Hudi tables: a snapshot is the timeline at one instant."""

from bridge.table.hudi.format import HudiFormat

TABLE_FORMAT = HudiFormat()
