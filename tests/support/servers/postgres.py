"""A temporary PostgreSQL server with its own data directory, loopback port and user.

PostgreSQL refuses to run as root. For root it runs as the user created by its Debian package.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from bridge.kernel.errors import EnvironmentMissing
from bridge.servers.maven import Artifact, artifact_file
from bridge.servers.process import (
    LOOPBACK,
    Server,
    ServerFailed,
    ServerSpec,
    choose_port,
    start_server,
)

NAME = "postgres"
USER = "hive"
DRIVER = Artifact("org.postgresql", "postgresql", "42.7.4")
_DEBIAN = Path("/usr/lib/postgresql")
_SETTINGS = {
    # The data is temporary and need not survive a power failure.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
}


class Postgres:
    """A running PostgreSQL. As a context manager it stops the server and removes its data."""

    def __init__(self, server: Server, programs: Path, directory: Path, password: str) -> None:
        self.server = server
        self._programs = programs
        self._directory = directory
        self._password = password

    def metastore(self, database: str) -> dict[str, str]:
        """The hive-site.xml entries for a metastore that uses a new database of this server."""
        self._run("createdb", database)
        return {
            "javax.jdo.option.ConnectionURL": (
                f"jdbc:postgresql://{LOOPBACK}:{self.server.port}/{database}"
            ),
            "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
            "javax.jdo.option.ConnectionUserName": USER,
            "javax.jdo.option.ConnectionPassword": self._password,
        }

    def execute(self, database: str, sql: str) -> None:
        """Executes a statement. Errors: ServerFailed: the statement fails."""
        self._run("psql", "-v", "ON_ERROR_STOP=1", "-c", sql, database)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [
                str(self._programs / program),
                *("-h", LOOPBACK),
                *("-p", str(self.server.port)),
                *("-U", USER),
                *arguments,
            ],
            env={**os.environ, "PGPASSWORD": self._password},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ServerFailed(f"{program} failed: {done.stderr.strip()}", f"see {self.server.log}")

    def stop(self) -> None:
        self.server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Postgres:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def find_postgres() -> Path | None:
    """The directory of PostgreSQL's programs; None if it is not installed."""
    return next(iter(_programs()), None)


def driver() -> Path:
    """The JDBC driver's jar. Errors: ArtifactUnavailable, EnvironmentMissing."""
    return artifact_file(DRIVER)


def start_postgres(port: int = 0) -> Postgres:
    """Creates a server in a new temporary directory and returns once it answers.

    Errors:
        EnvironmentMissing: PostgreSQL is not installed.
        PortInUse, ServerFailed: as for any server.
    """
    programs = find_postgres()
    if programs is None:
        raise EnvironmentMissing(
            "PostgreSQL is not installed", "install it: apt install postgresql"
        )
    directory = Path(tempfile.mkdtemp(prefix="skipbridge-postgres-"))  # only this user opens it
    password = secrets.token_hex(16)
    try:
        as_user = _as_user(directory)
        _initialise(programs, directory, password, as_user)
        chosen = choose_port(port, NAME)
        server = start_server(
            ServerSpec(
                name=NAME,
                command=(
                    *as_user,
                    str(programs / "postgres"),
                    *("-D", str(directory / "data")),
                    *("-p", str(chosen)),
                    *("-c", f"listen_addresses={LOOPBACK}"),
                    *("-c", "unix_socket_directories="),
                    *(o for k, v in _SETTINGS.items() for o in ("-c", f"{k}={v}")),
                ),
                directory=directory,
                port=chosen,
                ready=lambda: _answers(programs, chosen),
            )
        )
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return Postgres(server, programs, directory, password)


def _answers(programs: Path, port: int) -> bool:
    """Whether the database answers. Its port opens before it has started."""
    asked = [str(programs / "pg_isready"), "-q", "-h", LOOPBACK, "-p", str(port)]
    return subprocess.run(asked, check=False).returncode == 0


def _initialise(programs: Path, directory: Path, password: str, as_user: tuple[str, ...]) -> None:
    secret = directory / "password"
    secret.touch(mode=0o600)
    secret.write_text(password, "utf-8")
    os.chown(secret, directory.stat().st_uid, directory.stat().st_gid)
    try:
        done = subprocess.run(
            [
                *as_user,
                str(programs / "initdb"),
                *("-D", str(directory / "data")),
                *("-U", USER),
                *("-E", "UTF8"),
                "--locale=C",
                "--auth=scram-sha-256",
                "--no-sync",
                f"--pwfile={secret}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        secret.unlink()
    if done.returncode:
        raise ServerFailed(f"initdb failed: {done.stderr.strip()}", f"look at {directory}")


def _as_user(directory: Path) -> tuple[str, ...]:
    """The command prefix that avoids running as root. Gives that user the directory."""
    if os.getuid() != 0:
        return ()
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise EnvironmentMissing(
            "PostgreSQL does not run as root, and there is no user postgres",
            "run as another user, or install Debian's package",
        ) from None
    program = shutil.which("setpriv")
    if program is None:
        raise EnvironmentMissing("setpriv is not on the path", "install util-linux")
    os.chown(directory, user.pw_uid, user.pw_gid)
    return (
        program,
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        "--inh-caps=-all",
    )


def _programs() -> Iterator[Path]:
    found = shutil.which("postgres")
    if found is not None and (Path(found).resolve().parent / "initdb").exists():
        yield Path(found).resolve().parent
    yield from sorted(
        (d / "bin" for d in _DEBIAN.glob("*") if (d / "bin" / "initdb").exists()), reverse=True
    )
