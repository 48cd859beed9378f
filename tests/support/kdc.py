"""A Kerberos realm on loopback: a real key distribution centre with a few principals."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bridge.servers.process import LOOPBACK, ServerSpec, free_port, start_server
from tests.support.kerberos import Kerberos, find_kerberos

REALM = "SKIP.TEST"
_CONFIGURATION = """\
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
_PROFILE = """\
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
    """A running centre.

    Attributes:
        keytab: of the services.
        configuration: its krb5.conf.
        environment: of clients, which hold a ticket of the user ``planner``.
    """

    directory: Path
    kerberos: Kerberos
    keytab: Path
    configuration: Path
    environment: Mapping[str, str]


@contextmanager
def running_realm(directory: Path, services: Sequence[str]) -> Iterator[Realm]:
    """Starts a centre for these services, such as ``hive/localhost``.

    Errors: KerberosMissing.
    """
    kerberos = find_kerberos()
    port = free_port()
    words = {"realm": REALM, "host": LOOPBACK, "port": port, "directory": directory}
    configuration, profile = directory / "krb5.conf", directory / "kdc.conf"
    configuration.write_text(_CONFIGURATION.format(**words))
    profile.write_text(_PROFILE.format(**words) + kerberos.profile)
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

    keytab = directory / "services.keytab"
    run("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
    for service in services:
        run("kadmin.local", "-q", f"addprinc -randkey {service}")
        run("kadmin.local", "-q", f"ktadd -k {keytab} {service}")
    run("kadmin.local", "-q", "addprinc -pw secret planner")
    centre = ServerSpec(
        "kdc",
        (kerberos.programs["krb5kdc"], "-n"),
        directory,
        port,
        environment={**environment, **kerberos.environment},
    )
    with start_server(centre):
        run("kinit", "planner", said="secret\n")
        yield Realm(directory, kerberos, keytab, configuration, environment)
