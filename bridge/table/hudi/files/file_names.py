"""What names of base files and logs say, for all names at once.

A base file is ``<file id>_<write token>_<instant>.parquet``. A log is
``.<file id>_<instant>.log.<version>_<write token>``: up to version 6 with the instant of the base
file or of the compaction it follows, from version 8 on with that of the deltacommit that wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.errors import UnsupportedTable

_LOG = (
    r"^\.(?P<id>[^._]+)_(?P<instant>\d+)\.log\.(?P<version>\d{1,10})"
    r"(?:_(?P<token>\d+-\d+-\d+)(?P<suffix>\.cdc)?)?$"
)


@dataclass(frozen=True, slots=True)
class ParsedNames:
    """The names that are files of a Hudi table, as columns.

    Attributes:
        position: of each in the names that were given.
        file_ids, instants: Arrow large_string.
        is_log: False: a base file.
        versions: of logs; 0 for base files.
        tokens: write tokens of logs, Arrow large_string; empty for base files.
    """

    position: npt.NDArray[np.int64]
    file_ids: pa.Array
    instants: pa.Array
    is_log: npt.NDArray[np.bool_]
    versions: npt.NDArray[np.int64]
    tokens: pa.Array


def parse_names(names: pa.Array, base_format: str) -> ParsedNames:
    """Parses names of files, without directories.

    Names of other files are left out: partition metadata, markers, temporary files, logs of the
    changes that CDC queries read, and files that no Hudi writer made.

    Args:
        base_format: ending of base files.

    Errors:
        UnsupportedTable: a file was added from outside with Hudi's marker for it.
    """
    if pc.any(pc.ends_with(names, "_hudiext")).as_py():
        first = names.filter(pc.ends_with(names, "_hudiext"))[0].as_py()
        raise UnsupportedTable(
            f"the table has files that Hudi did not write, such as {first}",
            "read the table with Hudi's own reader",
        )
    dotted = pc.starts_with(names, ".").to_numpy(zero_copy_only=False)
    log_at, base_at = np.flatnonzero(dotted), np.flatnonzero(~dotted)
    pattern = rf"^(?P<id>[^_.]+)_[^_.]+_(?P<instant>\d+)\.{base_format}$"
    bases = pc.extract_regex(names.take(pa.array(base_at)), pattern)
    keep = bases.is_valid().to_numpy(zero_copy_only=False)
    if not keep.all():
        base_at, bases = base_at[keep], bases.filter(pa.array(keep))
    if not len(log_at):
        none = np.zeros(len(base_at), np.int64)
        return ParsedNames(
            base_at,
            _text(bases.field("id")),
            _text(bases.field("instant")),
            none.astype(np.bool_),
            none,
            pa.array([""], pa.large_string()).take(pa.array(none)),
        )
    logs = pc.extract_regex(names.take(pa.array(log_at)), _LOG)
    keep = logs.is_valid().to_numpy(zero_copy_only=False)
    keep[keep] = pc.equal(logs.filter(pa.array(keep)).field("suffix"), "").to_numpy(
        zero_copy_only=False
    )
    log_at, logs = log_at[keep], logs.filter(pa.array(keep))
    count = len(base_at)
    return ParsedNames(
        np.concatenate((base_at, log_at)),
        pa.concat_arrays([_text(bases.field("id")), _text(logs.field("id"))]),
        pa.concat_arrays([_text(bases.field("instant")), _text(logs.field("instant"))]),
        np.concatenate((np.zeros(count, np.bool_), np.ones(len(log_at), np.bool_))),
        np.concatenate((np.zeros(count, np.int64), _numbers(logs.field("version")))),
        pa.concat_arrays([pa.array([""] * count, pa.large_string()), _text(logs.field("token"))]),
    )


def _text(values: pa.Array) -> pa.Array:
    return values.cast(pa.large_string())


def _numbers(values: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = values.cast(pa.int64()).to_numpy()
    return numbers
