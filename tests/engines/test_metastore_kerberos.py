"""Kerberos against a real key distribution centre and a real metastore 4.0.1.

Both the centre's programs and the module ``kerberos`` come from `tests.support.kerberos`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.kernel.errors import MetastoreFailure, MetastoreUnavailable
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import MetastoreClient
from bridge.metastore.security import KERBEROS, OPEN, Security
from bridge.servers.embedded_metastore import MetastoreSpec, site
from bridge.servers.metastore_401 import start_metastore_401
from tests.support.kdc import REALM, running_realm
from tests.support.kerberos import KerberosMissing

pytestmark = pytest.mark.full

SECURITY = Security(mechanism=KERBEROS, principal=f"hive/_HOST@{REALM}")


@dataclass(frozen=True, slots=True)
class Guarded:
    """A metastore in a realm, and a ticket of the user ``planner``."""

    uri: str
    directory: Path
    environment: Mapping[str, str]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("realm")
    (directory / "core").mkdir()
    (directory / "core" / "core-site.xml").write_text(
        site({"hadoop.security.authentication": "kerberos"})
    )
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        try:
            made = stack.enter_context(running_realm(directory, ["hive/localhost"]))
        except KerberosMissing as error:
            pytest.skip(f"no Kerberos: {error}")
        if made.kerberos.path is not None:
            patch.syspath_prepend(made.kerberos.path)
            # It looks for the module when it is imported, and other tests may have done that.
            for name in [n for n in sys.modules if n.partition(".")[0] == "puresasl"]:
                patch.delitem(sys.modules, name)
        for key, value in made.environment.items():
            patch.setenv(key, value)
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={made.configuration}")
        spec = MetastoreSpec(
            directory / "metastore",
            port=0,
            in_memory=True,
            class_path=(directory / "core",),
            properties={
                "metastore.sasl.enabled": "true",
                "metastore.execute.setugi": "false",
                "metastore.kerberos.principal": f"hive/localhost@{REALM}",
                "metastore.kerberos.keytab.file": str(made.keytab),
            },
        )
        server = stack.enter_context(start_metastore_401(spec))
        yield Guarded(f"thrift://localhost:{server.port}", directory, made.environment)


def client(realm: Guarded, security: Security) -> MetastoreClient:
    return MetastoreClient(realm.uri, MetastoreSettings(retry_deadline=0.5, security=security))


def test_a_ticket_opens_the_metastore(realm: Guarded) -> None:
    with client(realm, SECURITY) as metastore:
        assert metastore.create_database("guarded") is True
        assert metastore.get_all_databases() == ["default", "guarded"]


def test_without_a_ticket(realm: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", str(realm.directory / "none"))
    with pytest.raises(MetastoreFailure, match="no ticket for hive/localhost") as caught:
        client(realm, SECURITY).get_all_databases()
    assert "kinit" in caught.value.hint


def test_a_metastore_of_another_name(realm: Guarded) -> None:
    other = Security(mechanism=KERBEROS, principal=f"hive/elsewhere@{REALM}")
    with pytest.raises(MetastoreFailure, match="no ticket for hive/elsewhere"):
        client(realm, other).get_all_databases()


def test_without_kerberos(realm: Guarded) -> None:
    with pytest.raises((MetastoreFailure, MetastoreUnavailable)) as caught:
        client(realm, OPEN).get_all_databases()
    assert "metastore.authentication" in caught.value.hint
