"""A decoder of Parquet files that some files end; a module of its own, which a child imports."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

from bridge.formats.data_files import Decoded
from bridge.formats.parquet import rewriting
from bridge.storage.port import Storage

POISON = b"poison"


def decode(storage: Storage, uri: str, size: int, *more: Any) -> Iterator[bytes | Decoded]:
    """As that of clustering, but ends its process at some files."""
    if POISON in storage.read(uri):
        os.kill(os.getpid(), signal.SIGSEGV)
    return rewriting.decode(storage, uri, size, *more)
