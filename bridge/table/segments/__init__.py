"""Tables of segments: fact files where they lie, named by versions of a log."""

from bridge.table.segments.format import SegmentsFormat

TABLE_FORMAT = SegmentsFormat()
