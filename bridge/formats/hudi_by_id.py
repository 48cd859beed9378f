"""File slices of Hudi tables that were written under an older schema: columns are found by id.

The reader's properties tell names and types in the base file (`bridge.formats.hudi.by_id`). Logs,
if the slice has any, are merged as for `hudi`.
"""

from bridge.formats.file_format import FileFormat

FORMAT = FileFormat(
    name="hudi_by_id",
    spelled="Hudi, columns by id",
    trino_reader="hudi_by_id",
    of_slices=True,
)
