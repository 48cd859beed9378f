"""Checks whether a metastore supports a location before anything is read or written."""

from __future__ import annotations

from bridge.kernel.errors import InvalidRequest
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import FILE_SYSTEMS

_OWN_CLIENTS = {"s3": "--s3", "s3a": "--s3", "abfs": "--azure", "abfss": "--azure"}


def require_file_system(client: MetastoreClient, location: str) -> None:
    """Refuses a location whose file system skipbridge's own metastore does not have.

    Other metastores do not report their file systems; they refuse such locations themselves.

    Errors:
        InvalidRequest: the metastore has no file system for this scheme.
        MetastoreUnavailable.
    """
    scheme, colon, _ = location.partition(":")
    if not colon or scheme == "file":
        return
    known = client.get_config_value(FILE_SYSTEMS, "")
    if known and scheme not in known.split(","):
        option = _OWN_CLIENTS.get(scheme)
        own = f"start it with `skipbridge metastore start {option}`, " if option else ""
        raise InvalidRequest(
            f"the metastore cannot register {location}: skipbridge's own metastore has no "
            f"file system for {scheme}:// (it has {known.replace(',', ', ')})",
            f"{own}register it in a Hive metastore that has one "
            f"(docs/how-to/s3.md), or work without: skipbridge index build {location}",
        )
