"""Logs of Hudi's file slices: indexed by their rows, so that whole slices can be skipped."""

from bridge.formats.file_format import FileFormat, StatisticsReader


def _statistics() -> StatisticsReader:
    from bridge.formats.hudi.log_statistics import READER

    return READER.read


FORMAT = FileFormat(
    name="hudi_log",
    spelled="Hudi log",
    statistics=_statistics,
    of_slices=True,
)
