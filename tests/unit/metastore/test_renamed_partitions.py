"""A partition that another job renames, or adds, while it is asked for by its name."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.kernel.errors import MetastoreFailure
from bridge.metastore._gen import ttypes
from bridge.metastore.calls import MethodUnknown
from bridge.metastore.client import MetastoreClient


class Renaming(MetastoreClient):
    """A metastore whose answers hold other values at first."""

    def __init__(self, answers: list[list[str]], projects: bool) -> None:
        super().__init__("thrift://127.0.0.1:1")
        self.answers, self.asked, self.projects = answers, 0, projects

    def call(self, method: str, *arguments: object, **options: Any) -> Any:
        if method == "get_partitions_with_specs" and not self.projects:
            raise MethodUnknown("no", "none")
        values = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        found = [ttypes.Partition(values=values, sd=ttypes.StorageDescriptor(location="file:/t"))]
        if method != "get_partitions_with_specs":
            return found
        listed = ttypes.PartitionListComposingSpec(partitions=found)
        spec = ttypes.PartitionSpec(partitionList=listed)
        return ttypes.GetPartitionsResponse(partitionSpec=[spec])


@pytest.mark.parametrize("ask", ["get_partitions_by_names", "get_partition_locations"])
@pytest.mark.parametrize("projects", [False, True])
@pytest.mark.parametrize("meanwhile", [["2"], []])
def test_it_is_asked_for_again(ask: str, projects: bool, meanwhile: list[str]) -> None:
    client = Renaming([meanwhile, ["1"]], projects)
    found = getattr(client, ask)("d", "t", ["p=1"])
    assert (found.names, found.missing, client.asked) == (("p=1",), (), 2)


@pytest.mark.parametrize("ask", ["get_partitions_by_names", "get_partition_locations"])
def test_a_name_that_disagrees_with_its_values_for_good_is_refused(ask: str) -> None:
    with pytest.raises(MetastoreFailure, match="got one with other values"):
        getattr(Renaming([["2"]], projects=True), ask)("d", "t", ["p=1"])
