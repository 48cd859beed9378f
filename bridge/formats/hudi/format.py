"""File slices of Hudi tables that have logs: a reader of its own merges them.

No file has this format by itself: a Hudi table names it for slices whose base file and logs are
merged (`bridge.table.hudi`).
"""

from bridge.formats.file_format import FileFormat

FORMAT = FileFormat(
    name="hudi",
    spelled="Hudi merge-on-read",
    trino_reader="hudi",
    of_slices=True,
)
