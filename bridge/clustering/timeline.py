"""Plans on their way: small files below the index's root, each created once and never changed.

::

    <root>/clustering/<instant>.requested.json        the plan
    <root>/clustering/<instant>.inflight.json         somebody began to execute it
    <root>/clustering/<instant>.group-00001.json      what became of one group
    <root>/clustering/<instant>.cancelled-00001.json  a writer is about to replace files of a group
    <root>/clustering/<instant>.refused.json          files that cannot be kept exactly
    <root>/clustering/<instant>.dearer.json           files that queries would read at a higher cost
    <root>/clustering/<instant>.ended.json            committing or cancelled
    <root>/clustering/<instant>.rejected.json         no group of it can be committed any more
    <root>/clustering/own-<generation>.json           publishing committed it, and no writer's file

A plan is completed when a generation of the index names its instant, and by nothing else. Who
commits a plan and who cancels it both create ``ended``, so that only one of them goes on.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from bridge.clustering.plan import ClusteringPlan, parse_plan
from bridge.clustering.rewriting.rewrite import GroupResult
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.replacements import FileState
from bridge.kernel.errors import FileCorrupt, FileUnreadable, InvalidRequest
from bridge.storage.commit_log import create_record, read_record
from bridge.storage.port import FileTable, Storage
from bridge.storage.reading.ahead import ask_all
from bridge.storage.uri import join

_NAME = re.compile(r"/(\d{17})\.(requested|inflight|group-\d+|ended|rejected)\.json$")

_OWN = re.compile(r"/own-(\d+)\.json$")
_REFUSED = re.compile(r"/(\d{17}\.(refused|dearer))\.json$")

PlanOrder = tuple[str, tuple[str, ...], int]
"""Of the rows of new files: the layout, its columns, and the size of the files."""


@dataclass(frozen=True, slots=True)
class PlanState:
    """Where a plan is.

    Attributes:
        state: ``requested``, ``inflight``, ``committing``, ``completed``, ``cancelled`` or
            ``rejected`` (no group could be rewritten).
        groups_done: groups that were rewritten or rejected.
    """

    instant: str
    state: str
    groups_done: int

    @property
    def pending(self) -> bool:
        return self.state in ("requested", "inflight", "committing")


class Waiting(NamedTuple):
    """Plans that have not ended.

    Attributes:
        plans: with their states, the oldest first.
        damaged: why plans cannot be executed, by instant. Who cancels them removes them.
    """

    plans: list[tuple[str, ClusteringPlan]]
    damaged: dict[str, str]


class Timeline:
    """The plans of one table.

    Args:
        root: of the table's index.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._directory = join(root, "clustering")

    def states(self, manifest: Manifest | None) -> list[PlanState]:
        """All plans that are recorded, the oldest first.

        Args:
            manifest: the newest generation, which tells what is completed.
        """
        done = (
            () if manifest is None or manifest.clustering is None else manifest.clustering.instants
        )
        held: dict[str, list[str]] = {}
        for path in self._storage.list_all(self._directory, recursive=False).paths.to_pylist():
            found = _NAME.search(path)
            if found:
                held.setdefault(found[1], []).append(found[2])
        states = []
        for instant in sorted(held):
            kinds = held[instant]
            if "requested" not in kinds:
                continue
            state = "inflight" if "inflight" in kinds else "requested"
            if instant in done:
                state = "completed"
            elif "ended" in kinds:
                state = self.outcome(instant) or state
            if "rejected" in kinds and instant not in done:
                state = "rejected"
            groups = sum(kind.startswith("group-") for kind in kinds)
            states.append(PlanState(instant, state, groups))
        return states

    def list_unfinished(self, manifest: Manifest | None) -> Waiting:
        """The plans that have not ended. A damaged one hides no other.

        Args:
            manifest: as in `states`.
        """
        found = Waiting([], {})
        for each in self.states(manifest):
            if each.pending:
                try:
                    found.plans.append((each.state, self.plan(each.instant)))
                except InvalidRequest:
                    continue  # cleaned up meanwhile
                except (FileCorrupt, FileUnreadable) as error:
                    found.damaged[each.instant] = error.message
        return found

    def request(self, plan: ClusteringPlan) -> bool:
        """Saves a plan; False if another one has its instant."""
        name, content = self._name(f"{plan.instant}.requested"), plan.to_bytes()
        return create_record(self._storage, name, content) == content

    def plan(self, instant: str) -> ClusteringPlan:
        """A plan by its instant.

        Errors:
            InvalidRequest: there is none.
            FileCorrupt: it is damaged.
        """
        name = self._name(f"{instant}.requested")
        plan = None
        if re.fullmatch(r"\d{17}", instant):
            plan = read_record(self._storage, name, lambda raw: parse_plan(raw, name))
        if plan is None:
            raise no_plan(instant)
        if plan.instant != instant:  # new files are written to a directory of that name
            raise FileCorrupt(
                f"{name} is the plan of {plan.instant!r}",
                "cancel this plan and schedule another one",
            )
        return plan

    def begin(self, instant: str) -> None:
        """Marks a plan as being executed; several may do so."""
        self._create(f"{instant}.inflight", b"{}\n")

    def end(self, instant: str, state: str) -> str:
        """Ends a plan as ``committing`` or ``cancelled``.

        Returns:
            How it ended: the first one who says so decides.
        """
        if self._create(f"{instant}.ended", json.dumps({"state": state}).encode()):
            return state
        return self.outcome(instant) or state

    def reject(self, instant: str) -> None:
        """Marks a plan of which nothing can be committed, whether or not it was committing."""
        self._create(f"{instant}.rejected", b"{}\n")

    def outcome(self, instant: str) -> str | None:
        """How a plan ended; None if it has not. If that cannot be read, the next run commits it."""
        if self._storage.stat(self._name(f"{instant}.rejected")) is not None:
            return "rejected"
        try:
            raw = self._read(f"{instant}.ended")
        except FileCorrupt:
            return "committing"
        return None if raw is None else str(raw.get("state", "committing"))

    def result(self, instant: str, group: int) -> GroupResult | None:
        """What became of a group: rejected if the record is damaged; None: it is yet to be done."""
        try:
            raw = self._read(_group(instant, group))
            if raw is None:
                return None
            new = tuple(FileState(**each) for each in raw["new"])
            aside = tuple((str(path), str(reason)) for path, reason in raw.get("aside", ()))
            body = {**raw, "new": new, "aside": aside, "id": group, "gathered": b""}
            return GroupResult(**body)
        except (FileCorrupt, TypeError, KeyError, ValueError) as error:
            name = self._name(_group(instant, group))
            return GroupResult(group, rejected=f"RECORD: {name} is no record of a group: {error}")

    def results(self, instant: str, groups: Sequence[int]) -> dict[int, GroupResult | None]:
        """`result` of each group, asked for side by side."""
        found = ask_all(
            self._storage, lambda group: self.result(instant, group), groups, self._directory
        )
        return dict(zip(groups, found, strict=True))

    def refuse(
        self, instant: str, files: Mapping[FileState, str], *, dearer: PlanOrder | None = None
    ) -> None:
        """Records files that would be rejected again, as long as they stay as they are.

        Args:
            files: and why each was.
            dearer: in this order queries would read them at a higher cost; None: they cannot be
                rewritten exactly, in whatever order.
        """
        body = {
            "files": [asdict(file) for file in files],
            "reasons": list(files.values()),
            "order": dearer,
        }
        name = "refused" if dearer is None else "dearer"
        self._create(f"{instant}.{name}", json.dumps(body).encode())

    def list_refused(self, dearer: PlanOrder | None = None) -> dict[FileState, str]:
        """All files that `refuse` was told of, and why; those of a damaged record are tried again.

        Args:
            dearer: the order for which those count that were refused for their cost; None: none.
        """
        listed = self._storage.list_all(self._directory, recursive=False).paths.to_pylist()
        named = [_REFUSED.search(path) for path in listed]
        names = [each.string for each in named if each and (dearer or each[2] == "refused")]
        found = ask_all(
            self._storage, lambda uri: self.read_refused(uri, dearer), names, self._directory
        )
        return {file: reason for files in found for file, reason in files.items()}

    def read_refused(self, uri: str, dearer: PlanOrder | None = None) -> dict[FileState, str]:
        """The files that one record of `refuse` names, and why; none if it is damaged.

        Args:
            dearer: none, if the record is of another order; None: whatever order it is of.
        """
        named = _REFUSED.search(uri)
        try:
            body = None if named is None else self._read(named[1])
            if not body:
                return {}
            order = body.get("order")
            if dearer is not None and order is not None and order != _spelled(dearer):
                return {}
            files = [FileState(**file) for file in body["files"]]
            reasons = body.get("reasons", [""] * len(files))
            return dict(zip(files, map(str, reasons), strict=True))
        except (FileCorrupt, TypeError, KeyError, ValueError):
            return {}

    def own(self, generations: Iterable[int]) -> None:
        """Records generations that hold no file of a writer that the one before lacked."""
        for generation in generations:
            self._create(f"own-{generation}", b"{}\n")

    def own_generations(self) -> set[int]:
        """All generations that `own` was told of."""
        listed = self._storage.list_all(self._directory, recursive=False).paths.to_pylist()
        return {int(found[1]) for path in listed if (found := _OWN.search(path))}

    def records(self) -> FileTable:
        """The files of all records."""
        return self._storage.list_all(self._directory, recursive=False)

    def is_recorded(self, instant: str) -> bool:
        """Whether a plan is still recorded."""
        return self._storage.stat(self._name(f"{instant}.requested")) is not None

    def record_group(self, instant: str, result: GroupResult) -> bool:
        """Records what became of a group; False if somebody else did: their files count."""
        body = asdict(result)
        del body["gathered"]
        return self._create(_group(instant, result.id), json.dumps(body).encode())

    def cancel_group(self, instant: str, group: int, file: str) -> None:
        """Cancels one group of a plan, because a writer replaces a file."""
        self._create(f"{instant}.cancelled-{group:05}", json.dumps({"file": file}).encode())

    def cancelled_groups(self, instant: str) -> set[int]:
        """The groups of a plan that writers have cancelled."""
        listed = self._storage.list_all(self._directory, recursive=False).paths.to_pylist()
        found = (re.search(rf"/{instant}\.cancelled-(\d+)\.json$", path) for path in listed)
        return {int(each[1]) for each in found if each}

    def _create(self, name: str, content: bytes) -> bool:
        return self._storage.put_if_absent(self._name(name), content)

    def _read(self, name: str) -> dict | None:  # type: ignore[type-arg]
        uri = self._name(name)

        def parse(content: bytes) -> dict:  # type: ignore[type-arg]
            try:
                found = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise FileCorrupt(f"{uri} is not JSON: {error}", "delete it") from error
            if not isinstance(found, dict):
                raise FileCorrupt(f"{uri} is not a record of clustering", "delete it")
            return found

        return read_record(self._storage, uri, parse)

    def _name(self, name: str) -> str:
        return join(self._directory, f"{name}.json")


def no_plan(instant: str) -> InvalidRequest:
    """The error if a plan does not exist."""
    return InvalidRequest(
        f"there is no clustering plan {instant!r}", "skipbridge cluster show lists them"
    )


def order_of(plan: ClusteringPlan) -> PlanOrder:
    """The order of a plan's new files."""
    return plan.layout, plan.columns, plan.target


def _spelled(order: PlanOrder) -> list[object]:
    """As a record holds it."""
    return json.loads(json.dumps(order))  # type: ignore[no-any-return]


def _group(instant: str, group: int) -> str:
    return f"{instant}.group-{group:05}"


def new_instant() -> str:
    """Now, in UTC, as ``yyyyMMddHHmmssSSS``."""
    return dt.datetime.now(dt.UTC).strftime("%Y%m%d%H%M%S%f")[:17]
