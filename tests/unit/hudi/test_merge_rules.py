"""The rules of a merge, as a table's properties say them."""

from __future__ import annotations

import pytest

from bridge.kernel.errors import UnsupportedTable
from bridge.table.hudi.merging.merge_mode import MergeMode
from bridge.table.hudi.merging.merge_rules import MergeRules, merge_rules

EVENT = MergeRules(MergeMode.EVENT_TIME_ORDERING, ordering_fields=("ts",))
COMMIT = MergeRules(MergeMode.COMMIT_TIME_ORDERING, ordering_fields=("ts",))
OLD_EVENT = MergeRules(MergeMode.EVENT_TIME_ORDERING, True, ("ts",))
OLD_COMMIT = MergeRules(MergeMode.COMMIT_TIME_ORDERING, True, ("ts",))

MODEL = "org.apache.hudi.common.model."


@pytest.mark.parametrize(
    ("properties", "rules"),
    [
        ({"version": "6"}, OLD_COMMIT),
        ({"version": "6", "payload": "DefaultHoodieRecordPayload"}, OLD_EVENT),
        ({"version": "6", "payload": "OverwriteWithLatestAvroPayload"}, OLD_COMMIT),
        ({"version": "6", "strategy": "ce9acb64-bde0-424c-9b91-f6ebba25356d"}, COMMIT),
        ({"version": "6", "strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"}, EVENT),
        ({"version": "6", "strategy": "some-other"}, None),
        ({"version": "8", "mode": "SOMETHING"}, None),
        ({"version": "8", "mode": "EVENT_TIME_ORDERING"}, EVENT),
        ({"version": "9", "mode": "COMMIT_TIME_ORDERING"}, COMMIT),
        ({"version": "8", "payload": "OverwriteWithLatestAvroPayload"}, COMMIT),
        ({"version": "8"}, EVENT),
        ({"version": "8", "mode": "CUSTOM"}, None),
        ({"version": "6", "payload": "PartialUpdateAvroPayload"}, None),
        ({"version": "9", "mode": "EVENT_TIME_ORDERING", "partial": "IGNORE_DEFAULTS"}, None),
        ({"version": "next"}, None),
    ],
)
def test_rules_of_properties(properties: dict[str, str], rules: MergeRules | None) -> None:
    names = {
        "version": "hoodie.table.version",
        "mode": "hoodie.record.merge.mode",
        "strategy": "hoodie.record.merge.strategy.id",
        "payload": "hoodie.compaction.payload.class",
        "partial": "hoodie.table.partial.update.mode",
    }
    given = {names[k]: (MODEL + v if k == "payload" else v) for k, v in properties.items()}
    given["hoodie.table.precombine.field"] = "ts"
    if rules is None:
        with pytest.raises(UnsupportedTable):
            merge_rules(given)
    else:
        assert merge_rules(given) == rules


def test_rules_of_keys_and_markers() -> None:
    given = {
        "hoodie.table.version": "9",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.table.ordering.fields": "ts, seq",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.recordkey.fields": "id,day",
        "hoodie.record.merge.property.hoodie.payload.delete.field": "Op",
        "hoodie.record.merge.property.hoodie.payload.delete.marker": "D",
    }
    rules = merge_rules(given)
    assert rules.ordering_fields == ("ts", "seq")
    assert rules.key_fields == ("id", "day")
    assert rules.delete_marker == ("Op", "D")
    with pytest.raises(UnsupportedTable, match="merge property x"):
        merge_rules({**given, "hoodie.record.merge.property.x": "y"})
    del given["hoodie.table.recordkey.fields"]
    with pytest.raises(UnsupportedTable, match="record keys"):
        merge_rules(given)
