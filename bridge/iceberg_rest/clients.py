"""Which client asks: each reads some answers wrongly that the other needs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Client(Enum):
    """A client of the REST protocol; the value is its engine's name in reports and metrics."""

    JAVA = "iceberg-java"
    """Iceberg's Java library: Spark, and whatever else is built on it."""
    PYICEBERG = "pyiceberg"
    OTHER = "iceberg-other"
    """An unknown one: what any of the others cannot read is refused."""


def client_of(headers: Mapping[str, str]) -> Client:
    """The client by its headers, whose names are in lower case."""
    if headers.get("user-agent", "").startswith("PyIceberg/"):
        return Client.PYICEBERG
    if headers.get("x-client-version", "").startswith("Apache Iceberg "):
        return Client.JAVA
    return Client.OTHER
