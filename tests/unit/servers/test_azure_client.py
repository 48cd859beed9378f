"""Hadoop's properties of the metastore's Azure client."""

from __future__ import annotations

import os

import pytest

from bridge.kernel.errors import EnvironmentMissing, StorageFailure
from bridge.servers import s3_client
from bridge.servers.azure_client import azure_class_path, azure_properties

CLIENT = "org.apache.hadoop.fs.azurebfs"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)


def test_the_cloud_needs_no_endpoint() -> None:
    assert azure_properties(allow_http=False) == {
        "fs.abfs.impl": f"{CLIENT}.AzureBlobFileSystem",
        "fs.abfss.impl": f"{CLIENT}.SecureAzureBlobFileSystem",
    }


@pytest.mark.parametrize(
    ("variables", "kind", "property"),
    [
        (["AZURE_STORAGE_ACCOUNT_KEY"], "SharedKey", "fs.azure.account.key"),
        (["AZURE_STORAGE_SAS_TOKEN"], "SAS", "fs.azure.sas.fixed.token"),
        (
            ["AZURE_CLIENT_SECRET", "AZURE_CLIENT_ID", "AZURE_TENANT_ID"],
            "OAuth",
            "fs.azure.account.oauth2.client.secret",
        ),
    ],
)
def test_secrets_stay_in_the_environment(
    variables: list[str], kind: str, property: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in variables:
        monkeypatch.setenv(name, "hidden")
    found = azure_properties(allow_http=False)
    assert found["fs.azure.account.auth.type"] == kind
    assert found[property] == f"${{env.{variables[0]}}}"
    assert "hidden" not in "".join(found.values())


def test_a_client_without_its_secret_is_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_CLIENT_ID", "me")
    assert "fs.azure.account.auth.type" not in azure_properties(allow_http=False)


@pytest.mark.parametrize(
    ("endpoint", "place", "tls"),
    [("http://h:9/a", "h:9", False), ("http://h/a", "h:80", False), ("https://h/a", "h:443", True)],
)
def test_an_emulator_is_asked_by_the_protocol_of_blobs(
    endpoint: str, place: str, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
    found = azure_properties(allow_http=True)
    assert found["fs.azure.abfs.endpoint"] == place
    assert found["fs.azure.fns.account.service.type"] == "BLOB"
    assert found["fs.azure.always.use.https"] == str(tls).lower()
    assert found["fs.abfss.impl"].endswith(".SecureAzureBlobFileSystem") == tls
    assert ("fs.azure.networking.library" in found) != tls


def test_plain_http_to_azure_is_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://h:9/a")
    with pytest.raises(StorageFailure, match="plain HTTP"):
        azure_properties(allow_http=False)


def test_another_hadoop_has_no_azure_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "_SDK_OF_HADOOP", {"9.9": "1"})
    with pytest.raises(EnvironmentMissing, match=r"of Hadoop \d+\.\d+\.\d+, for which no Azure"):
        azure_class_path()
