"""One process at a time: a small file below the index's root, renewed while its holder lives.

A second process that clusters a plain table would do the work of the first once more. Clusterings
of Hudi tables are not leased: Hudi's own timeline and lock decide there.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bridge.kernel.errors import BridgeError, ClusteringPending, FileUnreadable
from bridge.storage.port import Storage
from bridge.storage.uri import join

RENEWED, STALE = 10.0, 90.0
"""Seconds between renewals, and after which a lease that was not renewed is nobody's."""
_BOOT, _PIDS = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")


@contextmanager
def lease(storage: Storage, root: str, instant: str) -> Iterator[None]:
    """Holds a clustering for this process.

    A lease counts for 90 s after its last renewal, by the store's clock, or until its process has
    ended on this machine. The files of one clustering are numbered: who finds that the newest is
    nobody's creates the next one, and only one of several can.

    Args:
        root: of the table's index.
        instant: of a clustering; ``run``: of all that are planned and executed in one go.

    Errors:
        ClusteringPending: another process holds it.
        StorageFailure.
    """
    mine = {"host": socket.gethostname(), "pids": _pids(), "pid": os.getpid()}
    held = _files(storage, root, instant)
    _refuse_if_alive(storage, held.values(), instant)
    uri = _uri(root, instant, max(held, default=0) + 1)
    if not storage.put_if_absent(uri, _text(mine)):
        raise _taken(_read(storage, uri), instant)
    try:
        # Between the listing and the creation others may have come and gone, and numbers with them.
        held = {n: each for n, each in _files(storage, root, instant).items() if each != uri}
        created = storage.stat(uri)
        if created is None:
            raise _taken(None, instant)
        _refuse_if_alive(storage, held.values(), instant, created.modified)
    except BridgeError:
        storage.delete(uri)
        raise
    stop = threading.Event()
    renewing = threading.Thread(target=_renew, args=(storage, uri, mine, stop), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        stop.set()
        renewing.join()
        with suppress(BridgeError):
            for each in [*held.values(), uri]:  # the newest last: as long as it is there, it counts
                storage.delete(each)


def _files(storage: Storage, root: str, instant: str) -> dict[int, str]:
    """The lease's files by number."""
    name = re.compile(rf"/lease-{re.escape(instant)}-(\d+)\.json$")
    paths = storage.list_all(join(root, "clustering"), recursive=False).paths.to_pylist()
    found = ((name.search(path), path) for path in paths)
    return {int(match[1]): path for match, path in found if match}


def _refuse_if_alive(
    storage: Storage, uris: Iterable[str], instant: str, now: int | None = None
) -> None:
    """Looks for holders of leases.

    Args:
        now: microseconds, by the store's clock; None: only a first look, by this machine's, which
            may be minutes from that of a holder.

    Errors:
        ClusteringPending: somebody holds one of these leases.
    """
    for uri in uris:
        found, age = _read(storage, uri), None
        if now is not None:
            state = storage.stat(uri)
            age = STALE + 1 if state is None else (now - state.modified) / 1e6
        if found is not None and _alive(found, age):
            raise _taken(found, instant)


def _taken(found: dict[str, Any] | None, instant: str) -> ClusteringPending:
    who = found or {}
    return ClusteringPending(
        f"process {who.get('pid', '?')} on {who.get('host', '?')} is at the clustering {instant}",
        f"wait until it has ended; if it has died, wait {STALE:.0f} s",
    )


def _uri(root: str, instant: str, number: int) -> str:
    return join(root, f"clustering/lease-{instant}-{number:05d}.json")


def _renew(storage: Storage, uri: str, mine: dict[str, Any], stop: threading.Event) -> None:
    while not stop.wait(RENEWED):
        with suppress(BridgeError):  # the next one may succeed
            storage.put(uri, _text(mine))


def _text(mine: dict[str, Any]) -> bytes:
    return json.dumps({**mine, "at": time.time()}).encode()


def _read(storage: Storage, uri: str) -> dict[str, Any] | None:
    try:
        held = json.loads(storage.read(uri))
    except (FileUnreadable, ValueError):
        return None
    return held if isinstance(held, dict) else None


def _pids() -> str:
    """Whose process ids are those that this process sees: host names do not tell it.

    Containers may share the name of their host, and machines may have one name.
    """
    with suppress(OSError):
        return f"{_BOOT.read_text().strip()} {_PIDS.readlink()}"
    return ""


def _alive(held: dict[str, Any], age: float | None) -> bool:
    """Args: age: seconds since it was renewed; None: as it says itself."""
    at, pid = held.get("at"), held.get("pid")
    if not isinstance(at, int | float):
        return False
    if (abs(time.time() - at) if age is None else age) > STALE:
        return False
    mine = held.get("host") == socket.gethostname() and held.get("pids") == _pids() != ""
    if not mine or not isinstance(pid, int):
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
