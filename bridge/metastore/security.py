"""Secures connections to a metastore: TLS below, SASL above it, either or both.

No setting holds a secret: a password is read from its own file when it is needed, and appears in no
message, ``repr`` or log.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from thrift.transport.TTransport import TSaslClientTransport, TTransportBase

from bridge.kernel.errors import EnvironmentMissing, InvalidConfiguration, MetastoreFailure

NONE = "none"
PLAIN = "plain"
KERBEROS = "kerberos"
_MECHANISMS = (NONE, PLAIN, KERBEROS)
# A response is one SASL frame; the names of a million partitions take 30 MB.
_LONGEST_FRAME = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Security:
    """How connections are protected.

    Attributes:
        tls: use TLS; the server's certificate must name the host and be signed by an authority in
            ``ca`` (PEM), or by one of the system if ``ca`` is empty.
        certificate, key: PEM files of the client's certificate, if the server requires one.
        mechanism: ``none``, ``plain`` (user and password; only over TLS, or on this machine) or
            ``kerberos``.
        user, password_file: for ``plain``; the file holds only the password.
        principal: the metastore's, for ``kerberos``: ``hive/_HOST@REALM``; `_HOST` stands for the
            address's host. The client's own ticket comes from the credential cache (``kinit``).
    """

    tls: bool = False
    ca: str = ""
    certificate: str = ""
    key: str = ""
    mechanism: str = NONE
    user: str = ""
    password_file: str = ""
    principal: str = ""

    def __post_init__(self) -> None:
        """Errors: InvalidConfiguration: a setting is missing, or has no effect."""
        if self.mechanism not in _MECHANISMS:
            raise InvalidConfiguration(
                f"metastore.authentication is {self.mechanism!r}", f"give {', '.join(_MECHANISMS)}"
            )
        if self.mechanism == PLAIN and not (self.user and self.password_file):
            raise InvalidConfiguration(
                "metastore.authentication plain needs a user and a password",
                "set metastore.user, and metastore.password_file to a file that holds the password",
            )
        if self.mechanism == KERBEROS and self.principal.count("/") != 1:
            raise InvalidConfiguration(
                f"metastore.kerberos_principal is {self.principal!r}", "give hive/_HOST@REALM"
            )
        if not self.tls and (self.ca or self.certificate):
            raise InvalidConfiguration(
                "a certificate is set for a metastore without TLS", "set metastore.tls = true"
            )

    def wrap(self, raw: socket.socket, host: str) -> socket.socket:
        """The socket after the TLS handshake; unchanged without TLS.

        Errors:
            MetastoreFailure: the peer does not support TLS, or its certificate is not valid.
            InvalidConfiguration: a certificate or key cannot be read.
        """
        if not self.tls:
            return raw
        context = self._context()
        try:
            return context.wrap_socket(raw, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise MetastoreFailure(
                f"the certificate of the metastore at {host} is not trusted: "
                f"{error.verify_message}",
                "set metastore.tls_ca to the PEM file of the authority that signed it",
            ) from error
        except ssl.SSLError as error:
            raise MetastoreFailure(
                f"no TLS with the metastore at {host}: {error.reason or error}",
                "check metastore.tls, and whether the server requires a client certificate",
            ) from error

    def authenticate(self, transport: TTransportBase, host: str) -> TTransportBase:
        """The transport after the SASL exchange; unchanged without SASL.

        Errors:
            thrift.transport.TTransport.TTransportException: refused, or closed by the peer.
            InvalidConfiguration: the password cannot be read.
            EnvironmentMissing: the Kerberos library is not installed.
        """
        if self.mechanism == NONE:
            return transport
        if self.mechanism == KERBEROS:
            return self._kerberos(transport, host)
        self._refuse_open_wire(host)
        sasl = TSaslClientTransport(
            transport,
            host,
            "hive",
            "PLAIN",
            max_frame_size=_LONGEST_FRAME,
            username=self.user,
            password=self._password(),
        )
        sasl.open()
        return sasl

    def _kerberos(self, transport: TTransportBase, host: str) -> TTransportBase:
        from puresasl import SASLError

        service, _, rest = self.principal.partition("/")
        named = rest.partition("@")[0].replace("_HOST", host)
        try:
            sasl = TSaslClientTransport(
                transport, named, service, "GSSAPI", max_frame_size=_LONGEST_FRAME
            )
            sasl.open()
        except SASLError as error:
            raise EnvironmentMissing(
                f"no Kerberos: {error}", "pip install kerberos (it needs libkrb5-dev)"
            ) from error
        except Exception as error:
            # The library is optional, so its errors cannot be named here.
            if type(error).__module__ != "kerberos" and "GSSError" not in type(error).__name__:
                raise
            raise MetastoreFailure(
                f"Kerberos gives no ticket for {service}/{named}: {error.args}",
                "klist shows the tickets, kinit gets one",
            ) from error
        return sasl

    def _refuse_open_wire(self, host: str) -> None:
        if not self.tls and host not in ("localhost", "127.0.0.1", "::1"):
            raise InvalidConfiguration(
                f"a password would go to {host} in the clear", "set metastore.tls = true"
            )

    def _password(self) -> str:
        try:
            return Path(self.password_file).read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise InvalidConfiguration(
                f"cannot read metastore.password_file {self.password_file}: {why}",
                "it must hold only the password",
            ) from None

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except OSError as error:  # includes ssl.SSLError
            raise InvalidConfiguration(
                f"cannot read the certificates {self.ca} {self.certificate}: {error}",
                "metastore.tls_ca, metastore.tls_certificate and metastore.tls_key name PEM files",
            ) from error
        return context


OPEN = Security()
"""No protection: Hive's default."""
