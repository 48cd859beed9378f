from __future__ import annotations

from pathlib import Path

import pytest
from thrift.transport.TTransport import TMemoryBuffer

from bridge.kernel.errors import InvalidConfiguration
from bridge.metastore.security import Security


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"mechanism": "digest"}, "authentication is 'digest'"),
        ({"mechanism": "plain"}, "needs a user and a password"),
        ({"mechanism": "plain", "user": "u"}, "needs a user and a password"),
        ({"mechanism": "kerberos"}, "kerberos_principal is ''"),
        ({"mechanism": "kerberos", "principal": "hive@REALM"}, "kerberos_principal"),
        ({"ca": "a.pem"}, "without TLS"),
    ],
)
def test_what_cannot_be(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidConfiguration, match=told):
        Security(**wrong)  # type: ignore[arg-type]


def test_a_password_does_not_go_abroad_in_the_clear(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("open sesame\n")
    plain = Security(mechanism="plain", user="u", password_file=str(secret))
    sent = TMemoryBuffer()
    with pytest.raises(InvalidConfiguration, match="in the clear"):
        plain.authenticate(sent, "metastore.example")
    assert sent.getvalue() == b""
    assert "sesame" not in repr(plain)


def test_a_password_that_cannot_be_read(tmp_path: Path) -> None:
    plain = Security(mechanism="plain", user="u", password_file=str(tmp_path / "none"))
    with pytest.raises(InvalidConfiguration, match="cannot read"):
        plain.authenticate(TMemoryBuffer(), "localhost")
