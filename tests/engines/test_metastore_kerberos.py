"""Kerberos against a real key distribution centre and a real metastore 4.0.1.

Both the centre's programs and the module ``kerberos`` come from `tests.support.kerberos`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.errors import MetastoreFailure, MetastoreUnavailable
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import MetastoreClient
from bridge.metastore.security import KERBEROS, OPEN, Security
from bridge.servers.embedded_metastore import MetastoreSpec, site
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import LOOPBACK, ServerSpec, free_port, start_server
from tests.support.kerberos import KerberosMissing, find_kerberos

REALM = "SKIP.TEST"
SECURITY = Security(mechanism=KERBEROS, principal=f"hive/_HOST@{REALM}")
CONFIGURATION = """\
[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = {host}:{port}
  }}
"""
PROFILE = """\
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = {host}:{port}
[realms]
  {realm} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
  }}
"""


@dataclass(frozen=True, slots=True)
class Realm:
    """A realm with a metastore in it, and a ticket of the user ``planner``."""

    uri: str
    directory: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    try:
        kerberos = find_kerberos()
    except KerberosMissing as error:
        pytest.skip(f"no Kerberos: {error}")
    directory = tmp_path_factory.mktemp("realm")
    port = free_port()
    words = {"realm": REALM, "host": LOOPBACK, "port": port, "directory": directory}
    configuration, profile = directory / "krb5.conf", directory / "kdc.conf"
    configuration.write_text(CONFIGURATION.format(**words))
    profile.write_text(PROFILE.format(**words) + kerberos.profile)
    environment = {
        "KRB5_CONFIG": str(configuration),
        "KRB5_KDC_PROFILE": str(profile),
        "KRB5CCNAME": str(directory / "tickets"),
    }

    def run(*command: str, said: str = "") -> None:
        subprocess.run(
            [kerberos.programs[command[0]], *command[1:]],
            env={**os.environ, **environment, **kerberos.environment},
            input=said,
            text=True,
            check=True,
            capture_output=True,
        )

    keytab = directory / "hive.keytab"
    run("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
    run("kadmin.local", "-q", "addprinc -randkey hive/localhost")
    run("kadmin.local", "-q", "addprinc -pw secret planner")
    run("kadmin.local", "-q", f"ktadd -k {keytab} hive/localhost")
    centre = ServerSpec(
        "kdc",
        (kerberos.programs["krb5kdc"], "-n"),
        directory,
        port,
        environment={**environment, **kerberos.environment},
    )
    (directory / "core").mkdir()
    (directory / "core" / "core-site.xml").write_text(
        site({"hadoop.security.authentication": "kerberos"})
    )
    spec = MetastoreSpec(
        directory / "metastore",
        port=0,
        in_memory=True,
        class_path=(directory / "core",),
        properties={
            "metastore.sasl.enabled": "true",
            "metastore.execute.setugi": "false",
            "metastore.kerberos.principal": f"hive/localhost@{REALM}",
            "metastore.kerberos.keytab.file": str(keytab),
        },
    )
    with pytest.MonkeyPatch.context() as patch, start_server(centre):
        if kerberos.path is not None:
            patch.syspath_prepend(kerberos.path)
            # It looks for the module when it is imported, and other tests may have done that.
            for name in [n for n in sys.modules if n.partition(".")[0] == "puresasl"]:
                patch.delitem(sys.modules, name)
        run("kinit", "planner", said="secret\n")
        for key, value in environment.items():
            patch.setenv(key, value)
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={configuration}")
        with start_metastore_401(spec) as server:
            yield Realm(f"thrift://localhost:{server.port}", directory, environment)


def client(realm: Realm, security: Security) -> MetastoreClient:
    return MetastoreClient(realm.uri, MetastoreSettings(retry_deadline=0.5, security=security))


def test_a_ticket_opens_the_metastore(realm: Realm) -> None:
    with client(realm, SECURITY) as metastore:
        assert metastore.create_database("guarded") is True
        assert metastore.get_all_databases() == ["default", "guarded"]


def test_without_a_ticket(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.directory / "none"))
    with pytest.raises(MetastoreFailure, match="no ticket for hive/localhost") as caught:
        client(realm, SECURITY).get_all_databases()
    assert "kinit" in caught.value.hint


def test_a_metastore_of_another_name(realm: Realm) -> None:
    other = Security(mechanism=KERBEROS, principal=f"hive/elsewhere@{REALM}")
    with pytest.raises(MetastoreFailure, match="no ticket for hive/elsewhere"):
        client(realm, other).get_all_databases()


def test_without_kerberos(realm: Realm) -> None:
    with pytest.raises((MetastoreFailure, MetastoreUnavailable)) as caught:
        client(realm, OPEN).get_all_databases()
    assert "metastore.authentication" in caught.value.hint
