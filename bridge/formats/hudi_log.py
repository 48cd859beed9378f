"""Logs of Hudi's file slices: indexed by their rows, so that whole slices can be skipped."""

from bridge.formats.file_format import EntryBuilder, FileFormat
from bridge.storage.reading.ahead import Job


def _collect(entry: EntryBuilder) -> Job:
    from bridge.formats.hudi.log_statistics import READER

    return entry.from_statistics(READER.read)


FORMAT = FileFormat(
    name="hudi_log",
    spelled="Hudi log",
    collect=_collect,
    of_slices=True,
)
