"""The clusterings on a Hudi timeline, planned and done.

A clustering is requested with its whole plan: an Avro body that stays beside the later states of
the instant. From version 8 on its action is ``clustering`` until it is completed, before that, and
once it is completed, ``replacecommit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.kernel.errors import FileCorrupt, FileUnreadable
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.timeline.commit_metadata import CommitMetadata, read_avro
from bridge.table.hudi.timeline.instant import Instant

_CLUSTER = "CLUSTER"
SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"


@dataclass(frozen=True, slots=True)
class SliceToCluster:
    """A file slice of a plan.

    Attributes:
        base: URI of the base file, as Hudi spells it; empty if the slice is logs alone.
        logs: their number.
    """

    partition: str
    file_id: str
    base: str
    logs: int


@dataclass(frozen=True, slots=True)
class GroupToCluster:
    """Slices of one partition that are rewritten together, into so many new file groups."""

    slices: tuple[SliceToCluster, ...]
    outputs: int


@dataclass(frozen=True, slots=True)
class HudiClustering:
    """One clustering.

    Attributes:
        instant: on the timeline.
        groups: of its plan; empty if the plan is gone.
        columns: by which the plan sorts.
        extra: what its scheduler kept in the plan.
        commit: what it wrote, if it is completed.
    """

    instant: Instant
    groups: tuple[GroupToCluster, ...]
    columns: tuple[str, ...]
    extra: Mapping[str, str]
    commit: CommitMetadata | None = None

    @property
    def state(self) -> str:
        """``requested``, ``inflight`` or ``completed``."""
        return self.instant.state.name.lower()

    @property
    def slices(self) -> list[SliceToCluster]:
        return [each for group in self.groups for each in group.slices]


def clusterings(view: FileSystemView) -> list[HudiClustering]:
    """All clusterings of the active timeline, by requested time.

    Errors:
        FileCorrupt: a plan or a commit cannot be read.
    """
    found = []
    done = view.timeline.of("replacecommit")
    for instant, commit in zip(done, view.commits(done), strict=True):
        if commit.operation.upper() == _CLUSTER:
            plan = _plan(view, instant)
            found.append(plan_of(instant, plan or {}, commit))
    for instant in view.timeline.pending_of("clustering", "replacecommit"):
        plan = _plan(view, instant)
        if plan is not None:
            found.append(plan_of(instant, plan))
    return sorted(found, key=lambda each: each.instant.requested)


def is_clustering(view: FileSystemView, instant: Instant) -> bool:
    """Whether a pending instant is a clustering. Errors: FileCorrupt."""
    return instant.action in ("clustering", "replacecommit") and _plan(view, instant) is not None


def plan_of(
    instant: Instant, body: Mapping[str, Any], commit: CommitMetadata | None = None
) -> HudiClustering:
    """A clustering from the body of its request. Errors: FileCorrupt."""
    try:
        plan = body.get("clusteringPlan") or {}
        strategy = plan.get("strategy") or {}
        columns = (strategy.get("strategyParams") or {}).get(SORT_COLUMNS) or ""
        return HudiClustering(
            instant,
            tuple(_group(each) for each in plan.get("inputGroups") or ()),
            tuple(c.strip() for c in columns.split(",") if c.strip()),
            dict(body.get("extraMetadata") or {}),
            commit,
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise _corrupt(instant, error) from error


def _group(body: Mapping[str, Any]) -> GroupToCluster:
    slices = tuple(
        SliceToCluster(
            each["partitionPath"] or "",
            each["fileId"],
            each["dataFilePath"] or "",
            len(each["deltaFilePaths"] or ()),
        )
        for each in body["slices"]
    )
    return GroupToCluster(slices, body["numOutputFileGroups"] or 0)


def _plan(view: FileSystemView, instant: Instant) -> dict[str, Any] | None:
    """The body of a request; None if it is gone, or of another action."""
    actions = ("clustering", "replacecommit") if view.config.completes else ("replacecommit",)
    for action in actions:
        uri = f"{view.timeline.uri}/{instant.requested}.{action}.requested"
        if view.storage.stat(uri) is None:
            continue
        try:
            content = view.storage.read(uri)
        except FileUnreadable:
            continue  # a rollback took it away meanwhile
        if not content:
            continue
        try:
            (body,) = read_avro(content)
        except Exception as error:  # the library raises whatever a damaged body makes of it
            raise _corrupt(instant, error) from error
        if not isinstance(body, dict) or body.get("operationType") != _CLUSTER:
            return None
        return body
    return None


def _corrupt(instant: Instant, error: Exception) -> FileCorrupt:
    return FileCorrupt(
        f"the plan of the clustering {instant.requested} cannot be read ({type(error).__name__}: "
        f"{error})",
        "restore the requested instant, or roll it back with Hudi's CLI",
    )
