"""Where rows of Hudi tables differ from Spark's by intent, and what is refused by name."""

from __future__ import annotations

from tests.support.hudi_fixtures import HudiFixture

_UNLIKE_SPARK = {
    "cow_odd_values": "Spark takes the value k=v for Hive's style and shows v",
    "cow_odd_values_hive": "Spark unescapes 50%25, though values are not escaped there",
    "cow_widened": "Spark widens a float by its shortest text (0.2), Parquet readers exactly",
    "mor_widened": "as cow_widened",
}
_PATH_SHOWN = ("timestamp_keys", "custom_keys")
"""With bundle 0.15.0 Spark shows the path's text, or fails; later ones show the file's value."""
_HISTORY = ("renamed", "dropped_column", "retyped", "name_moved")
_NOT_MERGED = ("mor_payload_non_defaults", "mor_payload_partial", "mor_partial_updates")
_NOT_DEFINED = ("cow_first_commit_lost",)


def unlike_spark(fixture: HudiFixture) -> bool:
    """Whether our rows are right and Spark's differ, or Spark has none."""
    if fixture.answers().snapshot.error is not None or fixture.name in _UNLIKE_SPARK:
        return True
    return fixture.bundle == "0.15.0" and any(part in fixture.name for part in _PATH_SHOWN)


def keeps_schemas(fixture: HudiFixture) -> bool:
    """Tables with a history of schemas, in which columns changed their names or types."""
    return any(part in fixture.name for part in _HISTORY)


def refused_by_trino(fixture: HudiFixture) -> bool:
    """What the connector does not read: ORC base files too, until it has a reader for them."""
    return "orc" in fixture.name or fixture.name in _NOT_DEFINED


def refused_by_api(fixture: HudiFixture) -> bool:
    """What the Python API refuses: it merges whole records alone, and has no metastore."""
    return fixture.name in (*_NOT_MERGED, *_NOT_DEFINED)


def changes_unlike_spark(fixture: HudiFixture) -> bool:
    """Where Spark's changes differ by intent.

    Where files were cleaned, Spark reads the newest version and shows what is left of a range; we
    read the version at the range's end, or refuse. From archived commits it leaves rows out. It
    shows some partition values as in paths.
    """
    if any(i.action == "clean" for i in fixture.answers().timeline):
        return True
    parts = ("archived", "upgraded", "url_encoded", "null_partition")
    return any(part in fixture.name for part in parts)
