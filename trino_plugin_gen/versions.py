"""Which Trino releases the connector is made for, and what each needs.

Trino changes the interface to plugins (SPI) from release to release; releases with the same
interface are one family. The template is written for the default release; a family that differs has
overlays: whole files that take the place of the template's. No release is listed for which the
connector was not compiled, and no family on whose servers it was not tried.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT = 476


class UnsupportedVersion(ValueError):
    """There is no template for the asked Trino release."""


@dataclass(frozen=True, slots=True)
class Target:
    """One Trino release the connector can be built for.

    Attributes:
        version: the release.
        java_release: what its server runs on, and `--release` of the compiler.
        overlays: folders below `overlay/`, laid over the template one after the other.
        from_server: whether building from an installed server was tried; by Maven always was. The
            hive connector comes from there, or else from Maven.
    """

    version: int
    java_release: int
    overlays: tuple[str, ...]
    from_server: bool


# What a plugin can be built with: stores besides S3 and local files, and Trino's file system cache.
STORES = ("hdfs", "gcs", "azure", "cache")

# Jars of a server's lib/ that it shares with its plugins: compiled against, never copied.
PROVIDED = (
    "io.trino_trino-spi",
    "io.airlift_slice",
    "com.fasterxml.jackson.core_jackson-annotations",
    "io.opentelemetry_opentelemetry-api",
    "io.opentelemetry_opentelemetry-api-incubator",
    "io.opentelemetry_opentelemetry-context",
    "org.openjdk.jol_jol-core",
)

# Jars of a server's hive plugin that the connector's classes reach, found by following every class
# reference from them; names are shortened in the server's way.
NEEDED = (
    "com.faster...on.module_jackson-module-parameter-names",
    "com.fasterxml...kson.datatype_jackson-datatype-jsr310",
    "com.fasterxml.jackson.core_jackson-core",
    "com.fasterxml.jackson.core_jackson-databind",
    "com.fasterxml.jackson.datatype_jackson-datatype-guava",
    "com.fasterxml.jackson.datatype_jackson-datatype-jdk8",
    "com.fasterxml.jackson.datatype_jackson-datatype-joda",
    "com.google.guava_failureaccess",
    "com.google.guava_guava",
    "com.google.inject_guice",
    "io.airlift_aircompressor-v3",
    "io.airlift_json",
    "io.airlift_log",
    "io.airlift_units",
    "io.trino_trino-filesystem",
    "io.trino_trino-memory-context",
    "io.trino_trino-parquet",
    "io.trino_trino-plugin-toolkit",
    "it.unimi.dsi_fastutil",
    "jakarta.annotation_jakarta.annotation-api",
    "jakarta.inject_jakarta.inject-api",
    "joda-time_joda-time",
    "org.apache.parquet_parquet-column",
    "org.apache.parquet_parquet-common",
    "org.apache.parquet_parquet-encoding",
    "org.apache.parquet_parquet-format-structures",
    "org.slf4j_slf4j-api",
    "org.slf4j_slf4j-jdk14",
)

# Those of the readers of other formats. Of trino-hive itself only `HIVE_CLASSES` are taken: its jar
# beside the plugin would register its connector.
NEEDED_FORMATS = (
    "com.github.luben_zstd-jni",
    "commons-io_commons-io",
    "io.trino_trino-array",
    "io.trino_trino-hive-formats",
    "io.trino_trino-metastore",
    "io.trino_trino-orc",
    "org.apache.avro_avro",
    "org.apache.commons_commons-compress",
    "org.apache.commons_commons-lang3",
    "org.apache.orc_orc-format",
    "org.xerial.snappy_snappy-java",
)
HIVE = "io.trino_trino-hive"

# Its type coercions and schemas of Avro, and what they reach.
HIVE_CLASSES = (
    "io/trino/plugin/hive/HiveErrorCode*",
    "io/trino/plugin/hive/HiveStorageFormat*",
    "io/trino/plugin/hive/HiveTimestampPrecision*",
    "io/trino/plugin/hive/avro/AvroHiveFileUtils*",
    "io/trino/plugin/hive/coercions/*",
    "io/trino/plugin/hive/orc/OrcTypeTranslator*",
    "io/trino/plugin/hive/util/HiveCoercionPolicy*",
    "io/trino/plugin/hive/util/HiveTypeTranslator*",
    "io/trino/plugin/hive/util/HiveTypeUtil*",
    "io/trino/plugin/hive/util/HiveUtil*",
)

# And those that Trino's file systems and its S3 client take besides, as Maven resolves them: some
# of their classes are looked up by name.
NEEDED_FILE_SYSTEMS = (
    "aopalliance_aopalliance",
    "ch.qos.logback_logback-core",
    "com.fasterxml_classmate",
    "com.github.ishugaliy_allgood-consistent-hash",
    "commons-codec_commons-codec",
    "info.debatty_java-string-similarity",
    "io.airlift_bootstrap",
    "io.airlift_concurrent",
    "io.airlift_configuration",
    "io.airlift_http-client",
    "io.airlift_jetty-memory",
    "io.airlift_log-manager",
    "io.airlift_node",
    "io.airlift_secrets-spi",
    "io.airlift_security",
    "io.airlift_stats",
    "io.op...ntrib_opentelemetry-aws-xray-propagator",
    "io.ope...mconv_opentelemetry-semconv-incubating",
    "io.opent...entation_opentelemetry-instrumentation-api",
    "io.opente...mentation_opentelemetry-aws-sdk",
    "io.opentelemetry.instrumentation_opentelemetry-instrumentation-api-incubator",
    "io.opentelemetry.semconv_opentelemetry-semconv",
    "io.trino_trino-cache",
    "io.trino_trino-filesystem-manager",
    "io.trino_trino-filesystem-s3",
    "jakarta.validation_jakarta.validation-api",
    "net.openhft_zero-allocation-hashing",
    "org.antlr_antlr4-runtime",
    "org.apache.httpcomponents_httpclient",
    "org.apache.httpcomponents_httpcore",
    "org.eclipse.jetty.http2_jetty-http2-client",
    "org.eclipse.jetty.http2_jetty-http2-client-transport",
    "org.eclipse.jetty.http2_jetty-http2-common",
    "org.eclipse.jetty.http2_jetty-http2-hpack",
    "org.eclipse.jetty_jetty-alpn-client",
    "org.eclipse.jetty_jetty-alpn-java-client",
    "org.eclipse.jetty_jetty-client",
    "org.eclipse.jetty_jetty-http",
    "org.eclipse.jetty_jetty-io",
    "org.eclipse.jetty_jetty-util",
    "org.hdrhistogram_HdrHistogram",
    "org.hibernate.validator_hibernate-validator",
    "org.jboss.logging_jboss-logging",
    "org.reactivestreams_reactive-streams",
    "org.slf4j_jcl-over-slf4j",
    "org.slf4j_log4j-over-slf4j",
    "org.tomlj_tomlj",
    "org.weakref_jmxutils",
    "software.amazon.awssdk_annotations",
    "software.amazon.awssdk_apache-client",
    "software.amazon.awssdk_arns",
    "software.amazon.awssdk_auth",
    "software.amazon.awssdk_aws-core",
    "software.amazon.awssdk_aws-query-protocol",
    "software.amazon.awssdk_aws-xml-protocol",
    "software.amazon.awssdk_checksums",
    "software.amazon.awssdk_checksums-spi",
    "software.amazon.awssdk_crt-core",
    "software.amazon.awssdk_endpoints-spi",
    "software.amazon.awssdk_http-auth",
    "software.amazon.awssdk_http-auth-aws",
    "software.amazon.awssdk_http-auth-aws-eventstream",
    "software.amazon.awssdk_http-auth-spi",
    "software.amazon.awssdk_http-client-spi",
    "software.amazon.awssdk_identity-spi",
    "software.amazon.awssdk_json-utils",
    "software.amazon.awssdk_metrics-spi",
    "software.amazon.awssdk_profiles",
    "software.amazon.awssdk_protocol-core",
    "software.amazon.awssdk_regions",
    "software.amazon.awssdk_retries",
    "software.amazon.awssdk_retries-spi",
    "software.amazon.awssdk_s3",
    "software.amazon.awssdk_sdk-core",
    "software.amazon.awssdk_sts",
    "software.amazon.awssdk_third-party-jackson-core",
    "software.amazon.awssdk_utils",
    "software.amazon.eventstream_eventstream",
)

_TARGETS = {
    476: Target(476, 24, (), from_server=True),
    483: Target(483, 25, ("483",), from_server=False),
}


def supported() -> tuple[int, ...]:
    """The releases `target` knows, ascending."""
    return tuple(sorted(_TARGETS))


def target(version: int) -> Target:
    """The release's needs.

    Raises:
        UnsupportedVersion: naming the supported ones.

    >>> target(476).java_release
    24
    """
    try:
        return _TARGETS[version]
    except KeyError:
        known = ", ".join(str(each) for each in supported())
        raise UnsupportedVersion(
            f"no connector for Trino {version}: supported are {known}"
        ) from None
