"""versitygw, an S3 server on a local directory, as a process of its own.

It is compiled once by ``go install`` into the cache. Unlike moto it serves many connections at
once, heeds conditions, and lists 39,000 keys in seconds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.servers.process import Server, ServerSpec, free_port, start_server
from tests.support.go_programs import GoMissing, go_program

PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
VERSION = "1.8.0"
BUCKET = "lake"
_ACCESS, _SECRET = "test", "testtest"


@dataclass(frozen=True, slots=True)
class Versitygw:
    """A running server with one empty bucket.

    Attributes:
        options: of `bridge.storage.routed.open_storage`.
        environment: credentials for processes that take them from there.
    """

    server: Server
    options: dict[str, str]
    environment: dict[str, str]

    def through(self, port: int) -> dict[str, str]:
        """The options for a proxy on a port of this machine."""
        return {**self.options, "endpoint": f"http://127.0.0.1:{port}"}


def versitygw() -> Path:
    """The program; built if it is not in the cache. Errors: GoMissing."""
    return go_program(PACKAGE, VERSION)


def start_versitygw(directory: Path) -> Versitygw:
    """Starts one that keeps its objects in a directory.

    Errors:
        GoMissing: it cannot be built, or the directory has no extended attributes.
    """
    program = versitygw()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        os.setxattr(directory, "user.skipbridge", b"")
    except OSError as error:
        raise GoMissing(f"{directory} has no extended attributes: {error}") from error
    port = free_port()
    (directory / "objects" / BUCKET).mkdir(parents=True)
    command = (
        str(program),
        *("--port", f"127.0.0.1:{port}", "--region", "us-east-1", "--keep-alive", "--quiet"),
        *("posix", str(directory / "objects")),
    )
    secrets = {"ROOT_ACCESS_KEY": _ACCESS, "ROOT_SECRET_KEY": _SECRET}
    server = start_server(
        ServerSpec("versitygw", command, directory, port=port, environment=secrets)
    )
    options = {
        "endpoint": f"http://127.0.0.1:{port}",
        "region": "us-east-1",
        "access_key_id": _ACCESS,
        "secret_access_key": _SECRET,
        "allow_http": "true",
    }
    environment = {"AWS_ACCESS_KEY_ID": _ACCESS, "AWS_SECRET_ACCESS_KEY": _SECRET}
    return Versitygw(server, options, environment)


def versitygw_or_skip(directory: Path) -> Versitygw:
    """For fixtures: skips their tests, with the reason, where there is none."""
    try:
        return start_versitygw(directory)
    except GoMissing as error:
        pytest.skip(str(error))
