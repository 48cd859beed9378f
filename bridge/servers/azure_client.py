"""Hadoop's Azure client for the metastore in PySpark's jars, which have none.

It comes from Maven on request: 2 MB, because PySpark has most of what it needs.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from bridge.servers.maven import class_path, parse_artifact
from bridge.servers.s3_client import hadoop_version
from bridge.storage.object_store.object_client import checked_endpoint

_LEFT_OUT = (
    "com.fasterxml.jackson.core:*",
    "com.google.guava:*",
    "com.microsoft.azure:*",
    "org.apache.hadoop.thirdparty:*",
    "org.apache.httpcomponents:*",
    "org.codehaus.jackson:*",
    "org.codehaus.jettison:*",
    "org.eclipse.jetty:*",
    "org.slf4j:*",
)
_PACKAGE = "org.apache.hadoop.fs.azurebfs"
_OAUTH = "fs.azure.account.oauth2.client"
_KEYS = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
_SIGNATURES = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY")
_CLIENTS = ("AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID")
_SECRETS = ("AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET")
_TENANTS = (
    *("AZURE_STORAGE_TENANT_ID", "AZURE_STORAGE_AUTHORITY_ID"),
    *("AZURE_TENANT_ID", "AZURE_AUTHORITY_ID"),
)


def azure_class_path() -> tuple[Path, ...]:
    """The client's jars, of the release of Hadoop in PySpark.

    Errors:
        EnvironmentMissing: no PySpark, one with another Hadoop, or no Maven.
        ArtifactUnavailable: Maven cannot download them.
    """
    version = hadoop_version("Azure")
    return class_path(parse_artifact(f"org.apache.hadoop:hadoop-azure:{version}", *_LEFT_OUT))


def azure_properties(*, allow_http: bool) -> dict[str, str]:
    """The client's Hadoop properties. The configuration names the variables that hold secrets.

    An endpoint of the environment is one of an emulator, such as Azurite: it is asked by the
    protocol of blobs, and has the account's name in its path.

    Errors:
        StorageFailure: the endpoint has no scheme, or is plain HTTP, which is not allowed.
    """
    client = {
        "fs.abfs.impl": f"{_PACKAGE}.AzureBlobFileSystem",
        "fs.abfss.impl": f"{_PACKAGE}.SecureAzureBlobFileSystem",
    }
    return client | _credentials() | _endpoint(allow_http)


def _credentials() -> dict[str, str]:
    """Of the kind that obstore takes from the same variables."""
    if key := _named(_KEYS):
        return {"fs.azure.account.auth.type": "SharedKey", "fs.azure.account.key": key}
    client, secret, tenant = _named(_CLIENTS), _named(_SECRETS), _named(_TENANTS)
    if client and secret and tenant:
        return {
            "fs.azure.account.auth.type": "OAuth",
            "fs.azure.account.oauth.provider.type": f"{_PACKAGE}.oauth2.ClientCredsTokenProvider",
            f"{_OAUTH}.endpoint": f"https://login.microsoftonline.com/{tenant}/oauth2/token",
            f"{_OAUTH}.id": client,
            f"{_OAUTH}.secret": secret,
        }
    if signature := _named(_SIGNATURES):
        return {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": signature}
    return {}


def _named(variables: tuple[str, ...]) -> str:
    """How Hadoop's configuration refers to the first of these variables that is set."""
    return next((f"${{env.{name}}}" for name in variables if os.environ.get(name)), "")


def _endpoint(allow_http: bool) -> dict[str, str]:
    endpoint = checked_endpoint({}, {"allow_http": allow_http}, "abfss")
    if not endpoint:
        return {}
    place = urlsplit(endpoint)
    plain = place.scheme == "http"
    found = {
        "fs.azure.abfs.endpoint": f"{place.hostname}:{place.port or (80 if plain else 443)}",
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.fns.account.service.type": "BLOB",
        "fs.azure.always.use.https": str(not plain).lower(),
    }
    if plain:
        found["fs.abfss.impl"] = f"{_PACKAGE}.AzureBlobFileSystem"
        found["fs.azure.networking.library"] = "JDK_HTTP_URL_CONNECTION"  # the other needs TLS
    return found
