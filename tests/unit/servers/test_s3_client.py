"""Hadoop's properties of the metastore's S3 client."""

from __future__ import annotations

import pytest

from bridge.kernel.errors import EnvironmentMissing, StorageFailure
from bridge.servers import s3_client
from bridge.servers.s3_client import s3_class_path, s3_properties


def test_aws_needs_no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SKIP_SIGNATURE", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    client = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert s3_properties("", "", allow_http=False) == {"fs.s3.impl": client, "fs.s3a.impl": client}
    assert s3_properties("", "eu-central-1", allow_http=False)["fs.s3a.endpoint.region"]


@pytest.mark.parametrize(("endpoint", "tls"), [("http://h:9", "false"), ("https://h:9", "true")])
def test_another_store_is_addressed_by_path(endpoint: str, tls: str) -> None:
    found = s3_properties(endpoint, "", allow_http=True)
    assert found["fs.s3a.endpoint"] == endpoint
    assert found["fs.s3a.path.style.access"] == "true"
    assert found["fs.s3a.connection.ssl.enabled"] == tls


def test_plain_http_is_refused_unless_allowed() -> None:
    with pytest.raises(StorageFailure, match=r"storage\.endpoint is http://h:9, and plain HTTP"):
        s3_properties("http://h:9", "", allow_http=False)


def test_the_environment_names_an_endpoint_as_for_skipbridge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://other:9")
    found = s3_properties("", "", allow_http=False)
    assert found["fs.s3a.endpoint"] == "https://other:9"


def test_a_public_bucket_needs_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    found = s3_properties("", "", allow_http=False)
    assert found["fs.s3a.aws.credentials.provider"].endswith(".AnonymousAWSCredentialsProvider")


def test_another_hadoop_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "_SDK_OF_HADOOP", {"9.9": "1"})
    with pytest.raises(EnvironmentMissing, match=r"of Hadoop \d+\.\d+\.\d+, for which no S3"):
        s3_class_path()
