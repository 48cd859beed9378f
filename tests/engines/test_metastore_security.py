"""TLS, SASL PLAIN and Kerberos against real metastores of version 4.0.1."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bridge.kernel.errors import InvalidConfiguration, MetastoreFailure, MetastoreUnavailable
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import MetastoreClient
from bridge.metastore.security import PLAIN, Security
from bridge.servers.embedded_metastore import MetastoreSpec
from bridge.servers.java import find_jdk
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import LOOPBACK

pytestmark = pytest.mark.full

PASSWORD = "correct horse battery staple"


@dataclass(frozen=True, slots=True)
class Guarded:
    """A metastore that wants TLS and a password."""

    uri: str
    security: Security

    def client(self, **changes: object) -> MetastoreClient:
        return client(self.uri, replace(self.security, **changes))


def client(uri: str, security: Security) -> MetastoreClient:
    settings = MetastoreSettings(connect_timeout=5, retry_deadline=0.5, security=security)
    return MetastoreClient(uri, settings)


def authority(directory: Path, name: str) -> tuple[Path, Path]:
    """A key store for the loopback address, and its certificate as PEM."""
    keytool = str(find_jdk(17).home / "bin" / "keytool")
    store, pem = directory / f"{name}.p12", directory / f"{name}.pem"
    common = ["-keystore", str(store), "-storepass", "changeit", "-alias", name]
    made = [*("-dname", f"CN={name}"), *("-ext", f"san=ip:{LOOPBACK},dns:localhost")]
    subprocess.run(
        [keytool, "-genkeypair", *common, *made, *("-keyalg", "RSA"), *("-storetype", "PKCS12")],
        check=True,
        capture_output=True,
    )
    subprocess.run(
        [keytool, "-exportcert", "-rfc", *common, *("-file", str(pem))],
        check=True,
        capture_output=True,
    )
    return store, pem


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    store, pem = authority(directory, "metastore")
    password = directory / "password"
    password.write_text(f"{PASSWORD}\n")
    properties = {
        "metastore.execute.setugi": "false",
        "metastore.use.SSL": "true",
        "metastore.keystore.path": str(store),
        "metastore.keystore.password": "changeit",
        "metastore.authentication": "CONFIG",
        "metastore.authentication.config.username": "planner",
        "metastore.authentication.config.password": PASSWORD,
    }
    spec = MetastoreSpec(directory, port=0, in_memory=True, properties=properties)
    security = Security(
        tls=True, ca=str(pem), mechanism=PLAIN, user="planner", password_file=str(password)
    )
    with start_metastore_401(spec) as server:
        yield Guarded(f"thrift://{LOOPBACK}:{server.port}", security)


def test_tls_and_a_password(guarded: Guarded) -> None:
    with guarded.client() as metastore:
        assert metastore.create_database("safe") is True
        assert metastore.get_all_databases() == ["default", "safe"]
        assert metastore.get_all_tables("safe") == []


def test_a_wrong_password_is_told_at_once_and_never_shown(
    guarded: Guarded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = tmp_path / "password"
    wrong.write_text("open sesame")
    metastore = guarded.client(password_file=str(wrong))
    with pytest.raises(MetastoreFailure, match="refuses planner") as caught:
        metastore.get_all_databases()
    told = f"{caught.value} {caught.value.__cause__!r} {metastore.settings!r} {caplog.text}"
    assert "sesame" not in told and "staple" not in told
    with pytest.raises(MetastoreFailure, match="refuses nobody"):
        guarded.client(user="nobody").get_all_databases()


def test_a_certificate_of_somebody_else(guarded: Guarded, tmp_path: Path) -> None:
    _, pem = authority(tmp_path, "other")
    with pytest.raises(MetastoreFailure, match="not trusted") as caught:
        guarded.client(ca=str(pem)).get_all_databases()
    assert "metastore.tls_ca" in caught.value.hint
    with pytest.raises(InvalidConfiguration, match="cannot read the certificates"):
        guarded.client(ca=str(tmp_path / "none.pem")).get_all_databases()


def test_a_client_that_speaks_less_than_the_server_wants(guarded: Guarded) -> None:
    for less in (Security(), replace(guarded.security, tls=False, ca="")):
        with pytest.raises((MetastoreFailure, MetastoreUnavailable)) as caught:
            client(guarded.uri, less).get_all_databases()
        assert "metastore.tls" in caught.value.hint
    with pytest.raises((MetastoreFailure, MetastoreUnavailable)) as caught:
        guarded.client(mechanism="none").get_all_databases()
    assert "metastore.authentication" in caught.value.hint


def test_a_client_that_speaks_more_than_the_server_wants(metastore_401, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    plain = Security(mechanism=PLAIN, user="planner", password_file=str(password))
    for more in (Security(tls=True), plain):
        with pytest.raises((MetastoreFailure, MetastoreUnavailable)) as caught:
            client(metastore_401.uri, more).get_all_databases()
        assert "metastore.tls" in caught.value.hint


def test_through_the_command_line_and_no_secret_in_config_show(guarded: Guarded) -> None:
    environment = {
        "SKIPBRIDGE_METASTORE_URI": guarded.uri,
        "SKIPBRIDGE_METASTORE_TLS": "true",
        "SKIPBRIDGE_METASTORE_TLS_CA": guarded.security.ca,
        "SKIPBRIDGE_METASTORE_AUTHENTICATION": "plain",
        "SKIPBRIDGE_METASTORE_USER": "planner",
        "SKIPBRIDGE_METASTORE_PASSWORD_FILE": guarded.security.password_file,
    }
    shown = skipbridge(environment, "config", "show", "--output", "json")
    assert shown.returncode == 0 and "planner" in shown.stdout
    assert PASSWORD not in shown.stdout + shown.stderr
    missing = skipbridge(environment, "explain", "safe.nothing")
    assert "SCHEMA_NOT_FOUND" in missing.stderr or "TABLE_NOT_FOUND" in missing.stderr
    assert PASSWORD not in missing.stdout + missing.stderr


def skipbridge(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bridge", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
