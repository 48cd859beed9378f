"""Whether a writer has ended a file: readers of a directory must never get half of one.

Files of object stores appear as a whole. Elsewhere a writer that writes by path shows a file while
it grows. Parquet and ORC files end with a mark, which their writers write last. A file that begins
as neither of them is taken for whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bridge.errors import FileUnreadable
from bridge.index.replacements import FileState
from bridge.storage.port import Storage, same_state

_TAIL = 8
_BEGINS = (b"PAR1", b"PARE", b"ORC")
_AT_ONCE = 8


def unfinished(storage: Storage, files: Sequence[FileState]) -> list[FileState]:
    """Those files that are not whole, or have changed since they were listed.

    Errors:
        StorageFailure.
    """
    grows = [state for state in files if storage.has_directories(state.path)]
    with ThreadPoolExecutor(_AT_ONCE, "skipbridge-whole") as pool:
        whole = pool.map(lambda state: _is_whole(storage, state), grows)
        return [state for state, good in zip(grows, whole, strict=True) if not good]


def _is_whole(storage: Storage, state: FileState) -> bool:
    size = state.size
    try:
        (head, tail), now = storage.read_state(
            state.path, [(0, min(4, size)), (max(0, size - _TAIL), size)]
        )
    except FileUnreadable:
        return False
    if now is None or not same_state(state, now):
        return False
    if tail[-4:] in _BEGINS[:2]:
        return int.from_bytes(tail[:4], "little") + 12 <= size
    begun = any(head.startswith(mark) or mark.startswith(head) for mark in _BEGINS)
    if tail[-4:-1] == b"ORC" and size > _TAIL:
        return tail[-1] < size
    return not begun
