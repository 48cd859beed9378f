"""Errors of the local disk as sentences with a remedy."""

from __future__ import annotations

import errno
import os

from bridge.kernel.errors import (
    BridgeError,
    FileUnreadable,
    LimitExceeded,
    StorageFailure,
    StorageFull,
)
from bridge.storage.uri import printable

_EXHAUSTED = {
    errno.EMFILE: "this process has no file descriptor left",
    errno.ENFILE: "this machine has no file descriptor left",
    errno.ENOMEM: "this process has no memory map or no memory left",
}
_SAID = os.strerror(errno.EMFILE)


def refuse_exhausted(error: BaseException) -> None:
    """Raises LimitExceeded if something ran out of which the process or the machine has a limit.

    Such an error tells nothing of the file: it is neither missing nor damaged.
    """
    found = _EXHAUSTED.get(error.errno or 0) if isinstance(error, OSError) else None
    if found is None and _SAID in str(error):  # by the client of a store
        found = _EXHAUSTED[errno.EMFILE]
    if found is not None:
        raise LimitExceeded(
            f"{found}: {error}", "raise ulimit -n, or lower planner.open_files"
        ) from error


def unreadable(error: OSError, uri: str) -> FileUnreadable:
    """The error for a file that could not be read. Errors: LimitExceeded instead of it."""
    refuse_exhausted(error)
    uri = printable(uri)
    hint = "refresh the index" if isinstance(error, FileNotFoundError) else "check its permissions"
    return FileUnreadable(f"{uri} cannot be read: {error.strerror or error}", hint)


def failure(error: OSError, uri: str) -> BridgeError:
    """The error for any other failure. Errors: LimitExceeded instead of it."""
    refuse_exhausted(error)
    uri = printable(uri)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no space left to write {uri}", "free space or choose another place")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageFailure(
            f"no permission for {uri}: {error.strerror}", "check the directory's permissions"
        )
    return StorageFailure(f"{uri}: {error.strerror or error}", "check the path and the disk")
