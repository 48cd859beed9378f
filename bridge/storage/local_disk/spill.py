"""Temporary directories that outlive no run: a later one deletes those of processes that died.

A process holds a lock on a file in its directory. The kernel frees it however the process ends,
and other containers that share the directory see it, too.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "skipbridge-spill-"
_LOCK = "lock"


@contextmanager
def spill_directory() -> Iterator[Path]:
    """A new directory for files in the machine's temporary one; it is deleted at the end.

    Errors:
        OSError: it cannot be made.
    """
    _delete_dead()
    made = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        held = os.open(made / f".{_LOCK}", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            (made / f".{_LOCK}").rename(made / _LOCK)  # it counts once it is held
            yield made
        finally:
            os.close(held)
    finally:
        _delete(made)


def _delete_dead() -> None:
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # of another user, deleted meanwhile, or in use
            held = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _delete(directory)
            finally:
                os.close(held)


def _delete(directory: Path) -> None:
    """Deletes a directory of files, the lock last: a later run finds what this one leaves."""
    with suppress(OSError):
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in sorted((each.name for each in os.scandir(held)), key=_LOCK.__eq__):
                os.unlink(name, dir_fd=held)
            directory.rmdir()
        finally:
            os.close(held)
