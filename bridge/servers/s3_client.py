"""Hadoop's S3 client for the metastore in PySpark's jars, which have none.

It comes from Maven on request: some MB, because most of the AWS SDK (600 MB) is left out.
"""

from __future__ import annotations

import os
from pathlib import Path

from bridge.kernel.errors import EnvironmentMissing
from bridge.servers.embedded_metastore import pyspark_jars
from bridge.servers.maven import class_path, parse_artifact
from bridge.storage.object_store.object_client import checked_endpoint

_SDK_OF_HADOOP = {"3.5.0": "2.35.4"}
"""The AWS SDK that each release of hadoop-aws was built with."""
_SDK_PARTS = ("s3", "s3-transfer-manager", "sts", "apache-client")
_LEFT_OUT = (
    "software.amazon.awssdk:bundle",
    "software.amazon.awssdk:netty-nio-client",
    "org.wildfly.openssl:wildfly-openssl",
    "org.slf4j:slf4j-api",
)
_FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PACKAGE = "org.apache.hadoop.fs.s3a"


def s3_class_path() -> tuple[Path, ...]:
    """The client's jars, of the release of Hadoop in PySpark.

    Errors:
        EnvironmentMissing: no PySpark, one with another Hadoop, or no Maven.
        ArtifactUnavailable: Maven cannot download them.
    """
    version = hadoop_version("S3")
    return class_path(
        parse_artifact(f"org.apache.hadoop:hadoop-aws:{version}", *_LEFT_OUT),
        *(
            parse_artifact(f"software.amazon.awssdk:{part}:{_SDK_OF_HADOOP[version]}", *_LEFT_OUT)
            for part in _SDK_PARTS
        ),
    )


def hadoop_version(store: str) -> str:
    """The release of Hadoop in PySpark. Errors: EnvironmentMissing: not one with known clients."""
    found = [jar.stem.rpartition("-")[2] for jar in pyspark_jars().glob("hadoop-client-api-*.jar")]
    if not found or found[0] not in _SDK_OF_HADOOP:
        raise EnvironmentMissing(
            f"PySpark's jars are of Hadoop {', '.join(found) or 'unknown'}, for which no {store} "
            f"client is known",
            f"install the PySpark that skipbridge's constraints name (Hadoop "
            f"{', '.join(_SDK_OF_HADOOP)}), or use a metastore that has the client",
        )
    return found[0]


def s3_properties(endpoint: str, region: str, *, allow_http: bool) -> dict[str, str]:
    """The client's Hadoop properties; it takes the keys from the environment, as skipbridge does.

    Args:
        endpoint: of a store other than AWS, which is addressed by path; if it is empty, the one in
            the environment, or AWS.

    Errors:
        StorageFailure: the endpoint has no scheme, or is plain HTTP, which is not allowed.
    """
    properties = {"fs.s3.impl": _FILE_SYSTEM, "fs.s3a.impl": _FILE_SYSTEM}
    if region:
        properties["fs.s3a.endpoint.region"] = region
    endpoint = checked_endpoint({"endpoint": endpoint}, {"allow_http": allow_http})
    if endpoint:
        plain = endpoint.lower().startswith("http://")
        properties["fs.s3a.endpoint"] = endpoint
        properties["fs.s3a.path.style.access"] = "true"
        properties["fs.s3a.connection.ssl.enabled"] = "false" if plain else "true"
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() == "true":
        provider = f"{_PACKAGE}.AnonymousAWSCredentialsProvider"
        properties["fs.s3a.aws.credentials.provider"] = provider
    return properties
