"""Mistakes in settings and policies of Azure and GCS: one clear error each, before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.kernel.errors import FileUnreadable, StorageFailure
from bridge.storage.object_store.objectstore import open_store
from bridge.storage.routed import open_storage
from bridge.storage.uri import parse
from tests.storage.conftest import Place
from tests.support import azurite
from tests.support.azurite import Azurite, shared_access

pytestmark = pytest.mark.full

HOST = azurite.URI.partition("@")[2]
GCS = "gs://lake"
NOBODY = "http://127.0.0.1:9"


def told(options: Mapping[str, str], uri: str, message: str, remedy: str) -> None:
    storage = open_storage(options={**options, "retries": "0", "timeout": "5"})
    asks: tuple[Callable[[str], Any], ...] = (
        storage.list_all,
        storage.list_directories,
        lambda place: storage.list_all(place, recursive=False),
    )
    for ask in asks:
        with pytest.raises(StorageFailure, match=message) as caught:
            ask(uri)
        assert remedy in caught.value.hint
        assert "<?xml" not in caught.value.message


def without_key(options: Mapping[str, str], **others: str) -> dict[str, str]:
    kept = {k: v for k, v in options.items() if "account_key" not in k}
    return {**kept, **others}


def test_azure_endpoint(azure: Azurite) -> None:
    wrong = {**azure.options, "azure_storage_endpoint": NOBODY}
    told(wrong, f"{azurite.URI}/t", "be reached", "AZURE_STORAGE_ENDPOINT")


def test_azure_container(azure: Azurite) -> None:
    uri = f"abfss://elsewhere@{HOST}/t"
    told(azure.options, uri, "there is no container elsewhere", "container's name")
    with pytest.raises(FileUnreadable, match="there is no container elsewhere"):
        open_storage(options=azure.options).read(f"{uri}/f")


def test_azure_key(azure: Azurite) -> None:
    wrong = {**azure.options, "azure_storage_account_key": "aGlkZGVu"}
    told(wrong, f"{azurite.URI}/t", "refuses the credentials", "AZURE_STORAGE_ACCOUNT_KEY")
    with pytest.raises(FileUnreadable, match="refuses the credentials"):
        open_storage(options=wrong).read(f"{azurite.URI}/t/f")


def test_azure_without_credentials(azure: Azurite) -> None:
    uri = f"{azurite.URI}/t"
    told(without_key(azure.options), uri, "no credentials for abfss:", "AZURE_STORAGE_ACCOUNT_KEY")


def test_azure_without_the_permission_to_list(azure: Azurite) -> None:
    uri = f"{azurite.URI}/t"
    open_storage(options=azure.options).put(f"{uri}/f", b"data")
    only_read = without_key(azure.options, azure_storage_sas_token=shared_access("r"))
    told(only_read, uri, "no permission to list", "policy")
    assert open_storage(options=only_read).read(f"{uri}/f") == b"data"
    with pytest.raises(StorageFailure, match="no permission for"):
        open_storage(options=only_read).put(f"{uri}/g", b"data")


def test_azure_credentials_that_have_expired(azure: Azurite) -> None:
    old = shared_access("rl", timedelta(hours=-1))
    expired = without_key(azure.options, azure_storage_sas_token=old)
    told(expired, f"{azurite.URI}/t", "refuses the credentials", "AZURE_STORAGE_ACCOUNT_KEY")


@pytest.mark.parametrize("mistake", ["endpoint", "container", "key"])
def test_a_build_says_it_before_any_work_starts(
    azure: Azurite, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    given = {k.upper(): v for k, v in azure.options.items() if k != "allow_http"}
    container, message = azurite.CONTAINER, "there is no container elsewhere"
    if mistake == "endpoint":
        given["AZURE_STORAGE_ENDPOINT"], message = "127.0.0.1:9", "not an address with a scheme"
    elif mistake == "key":
        given["AZURE_STORAGE_ACCOUNT_KEY"], message = "aGlkZGVu", "refuses the credentials"
    else:
        container = "elsewhere"
    for name, value in {**given, "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("bridge.indexing.table.build_index", None)  # nothing is built
    place = f"abfss://{container}@{HOST}/t"
    found = CliRunner().invoke(cli, ["index", "build", place, "--local"])
    assert found.exit_code != 0
    assert "STORAGE_ERROR" in found.output and message in found.output


def test_plain_http_is_not_allowed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, uri in (
        ("AZURE_STORAGE_ENDPOINT", f"{azurite.URI}/t"),
        ("GOOGLE_BASE_URL", f"{GCS}/t"),
    ):
        monkeypatch.setenv(name, NOBODY)
        with pytest.raises(StorageFailure, match=f"{name} is http://.*not allowed"):
            open_storage().list_all(uri)


def test_settings_of_one_cloud_are_not_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOBODY)
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    settings = {"endpoint": "https://minio.lab:9000", "region": "eu-central-1"}
    for uri in (f"{azurite.URI}/t", f"{GCS}/t"):
        open_storage(uri, settings)
    azure = open_store(parse(f"{azurite.URI}/t"), settings)
    assert "endpoint" not in azure.config and "region" not in azure.config


@pytest.mark.parametrize(
    ("host", "endpoint"),
    [
        ("mine.dfs.core.windows.net", None),
        ("mine.dfs.core.usgovcloudapi.net", "https://mine.blob.core.usgovcloudapi.net"),
        ("mine.z12.dfs.storage.azure.net", "https://mine.z12.blob.storage.azure.net"),
        ("onelake.dfs.fabric.microsoft.com", "https://onelake.blob.fabric.microsoft.com"),
    ],
)
def test_an_account_is_asked_in_its_own_cloud(host: str, endpoint: str | None) -> None:
    found = open_store(parse(f"abfss://c@{host}/t"), {"azure_storage_account_key": "aGlkZGVu"})
    assert found.config.get("endpoint") == endpoint
    assert found.config["account_name"] == host.partition(".")[0]


def test_gcs_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    place = Place(open_storage(options={"retries": "0", "timeout": "2"}), "gs://lake/t")
    with pytest.raises(StorageFailure, match="no credentials for gs:") as caught:
        place.storage.list_all(place.root)
    assert "GOOGLE_SERVICE_ACCOUNT" in caught.value.hint
