"""Errors of the local disk as sentences with a remedy."""

from __future__ import annotations

import errno

from bridge.errors import BridgeError, FileUnreadable, StorageFailure, StorageFull


def unreadable(error: OSError, uri: str) -> FileUnreadable:
    """The error for a file that could not be read."""
    hint = "refresh the index" if isinstance(error, FileNotFoundError) else "check its permissions"
    return FileUnreadable(f"{uri} cannot be read: {error.strerror or error}", hint)


def failure(error: OSError, uri: str) -> BridgeError:
    """The error for any other failure."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(f"no space left to write {uri}", "free space or choose another place")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageFailure(
            f"no permission for {uri}: {error.strerror}", "check the directory's permissions"
        )
    return StorageFailure(f"{uri}: {error.strerror or error}", "check the path and the disk")
