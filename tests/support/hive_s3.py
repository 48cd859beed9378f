"""Hadoop's S3 client for Hive 4.0.1, ``s3a://``, with the AWS SDK that it was built for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bridge.servers.maven import class_path, parse_artifact

_SDK = "1.12.367"
# Hive has Jackson. The other parts of the SDK, 600 MB, are not needed.
_OF_HIVE = "com.fasterxml.jackson.core:*"
_S3_CLIENT = (
    parse_artifact(
        "org.apache.hadoop:hadoop-aws:3.3.6", "com.amazonaws:*", "org.wildfly.openssl:*", _OF_HIVE
    ),
    # where credentials are sought, classes of dynamodb are named
    *(
        parse_artifact(f"com.amazonaws:aws-java-sdk-{part}:{_SDK}", _OF_HIVE)
        for part in ("s3", "sts", "dynamodb")
    ),
)


def s3a_class_path() -> tuple[Path, ...]:
    """The client's jars, to come after Hive's own. Errors: as `class_path`."""
    return class_path(*_S3_CLIENT)


def s3a_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's properties for the options of `bridge.storage.routed.open_storage`.

    The keys come from the environment: Hive hides those of its configuration from Tez's tasks.
    """
    provider = "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"
    return {
        "fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": options["endpoint"],
        "fs.s3a.endpoint.region": options["region"],
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.aws.credentials.provider": provider,
    }
