"""Mistakes in settings and policies: one clear error each, before any work starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.kernel.errors import FileUnreadable, StorageFailure
from bridge.storage.routed import open_storage
from bridge.storage.store_errors import failure
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, Versitygw

MISTAKES: dict[str, tuple[Mapping[str, str], str, str, str]] = {
    "region": ({"region": "eu-west-1"}, BUCKET, "another region", "storage.region to us-east-1"),
    "endpoint": ({"endpoint": "http://127.0.0.1:9"}, BUCKET, "be reached", "storage.endpoint"),
    "bucket": ({}, "elsewhere", "there is no bucket elsewhere", "bucket's name"),
    "key": ({"access_key_id": "x"}, BUCKET, "refuses the credentials", "AWS_ACCESS_KEY_ID"),
    "secret": ({"secret_access_key": "x"}, BUCKET, "refuses the credentials", "AWS_SECRET"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_has_an_error_of_its_own(gateway: Versitygw, mistake: str) -> None:
    options, bucket, message, remedy = MISTAKES[mistake]
    storage = open_storage(options={**gateway.options, **options, "retries": "0"})
    uri = f"s3://{bucket}/t"
    asks: tuple[Any, ...] = (
        storage.list_all,
        storage.list_directories,
        lambda place: storage.list_all(place, recursive=False),
    )
    for ask in asks:
        with pytest.raises(StorageFailure, match=message) as caught:
            ask(uri)
        assert remedy in caught.value.hint
        assert "<?xml" not in caught.value.message
    if mistake != "endpoint":
        with pytest.raises(FileUnreadable, match=message):
            storage.read(f"{uri}/f")


@pytest.mark.parametrize("mistake", ["region", "endpoint", "bucket", "secret"])
def test_a_build_says_it_before_any_work_starts(
    gateway: Versitygw, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    options, bucket, message, _ = MISTAKES[mistake]
    given = {**gateway.options, **options}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", given["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given["secret_access_key"])
    monkeypatch.setenv("SKIPBRIDGE_STORAGE_ENDPOINT", given["endpoint"])
    monkeypatch.setenv("SKIPBRIDGE_STORAGE_REGION", given["region"])
    monkeypatch.setenv("SKIPBRIDGE_STORAGE_ALLOW_HTTP", "true")
    monkeypatch.setattr("bridge.indexing.table.build_index", None)  # nothing is built
    found = CliRunner().invoke(cli, ["index", "build", f"s3://{bucket}/t", "--local"])
    assert found.exit_code != 0
    assert "STORAGE_ERROR" in found.output and message in found.output


def test_no_permission_to_list() -> None:
    words = (
        "Generic S3 error: Error performing list request: Error performing GET http://s/lake - "
        'Server returned non-2xx status code: 403 Forbidden: <?xml version="1.0"?>\n'
        "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    )
    found = failure(Exception(words), "s3://lake/t")
    assert found.message == "no permission to list s3://lake/t: Access Denied"
    assert "policy" in found.hint


def test_the_words_of_the_store(gateway: Versitygw, proxy: SlowStore) -> None:
    proxy.behave(Behaviour(rate=1.0, faults=("503",)))
    try:
        storage = open_storage(options={**gateway.through(proxy.port), "retries": "0"})
        with pytest.raises(StorageFailure, match="SlowDown: Please reduce your request rate"):
            storage.list_all(f"s3://{BUCKET}/t")
        with pytest.raises(FileUnreadable, match="SlowDown: Please reduce your request rate"):
            storage.read(f"s3://{BUCKET}/t/f")
    finally:
        proxy.behave(Behaviour())
