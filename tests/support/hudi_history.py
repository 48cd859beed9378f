"""Random histories of a Hudi table, with the truth about what every file holds.

Each write puts items into file groups; compaction and clustering carry items on. So the items that
a snapshot must hold are known from the writes alone, and those that a file holds from how it was
made. Writers may overlap, crash, and be rolled back with files left behind.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.support.hudi_tables import HudiTable, Written, plan_body

Item = tuple[str, str]
"""The instant of a write, and the group that it wrote to."""


@dataclass(eq=False)
class Group:
    """A file group as its writers see it: the newest base file and the logs after it."""

    partition: str
    id: str
    base: Written | None = None
    base_instant: str = ""
    logs: list[Written] = field(default_factory=list)
    old: list[Written] = field(default_factory=list)
    compaction: str = ""
    replaced: str = ""
    busy: int = 0
    """Pending writes of logs; -1: a pending write of a base file, which excludes all others."""


_State = tuple[
    dict[Item, tuple[str, str]],
    dict[Item, tuple[str, str]],
    list[tuple[str, str]],
    list[Group],
    list[Group],
]


@dataclass(eq=False)
class Pending:
    """A write that may be finished or rolled back."""

    instant: str
    action: str
    groups: list[Group]
    files: list[tuple[Group, Written]]
    made: list[Group] = field(default_factory=list)
    inputs: list[list[Written]] = field(default_factory=list)
    operation: str = "UPSERT"


class History:
    """A table that makes up its own history.

    Attributes:
        held: the items in each file, by path.
        wrote: requested and completion time of the write of each item.
        removed: requested and completion time of the write that removed an item.
        versions: requested and completion time of each completed write.

    Args:
        tidy: a rollback leaves no files behind.
        restores: completed writes may be undone.
    """

    def __init__(
        self,
        root: Path,
        version: int,
        random: Random,
        merge_on_read: bool,
        *,
        tidy: bool = False,
        restores: bool = True,
    ) -> None:
        kind = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
        self.table = HudiTable(root, version, kind)
        self.merge_on_read, self._tidy, self._restores = merge_on_read, tidy, restores
        self.held: dict[str, list[Item]] = {}
        self._writers: dict[str, str] = {}
        self.wrote: dict[Item, tuple[str, str]] = {}
        self.removed: dict[Item, tuple[str, str]] = {}
        self.versions: list[tuple[str, str]] = []
        self._random = random
        self._clock = 20240101000001000
        self._next = 0
        self._groups: list[Group] = []
        self._gone: list[Group] = []
        self._pending: list[Pending] = []
        self._saved: tuple[str, _State] | None = None
        self._kept: set[str] = set()
        self._partitions = random.choice([["p", "q"], ["a/b", "a/c", "d"], [""]])

    def run(self, steps: int) -> None:
        """Takes some steps; some of them find nothing to do."""
        choices = [self._insert, self._update, self._update, self._finish, self._finish]
        choices += [self._roll_back, self._cluster, self._overwrite, self._clean]
        if self._restores:
            choices += [self._save, self._restore]
        if self.merge_on_read:
            choices += [self._update, self._insert_log, self._compact]
        for _ in range(steps):
            self._random.choice(choices)()

    def finish(self) -> None:
        """Finishes every pending write."""
        while self._pending:
            self._complete(self._pending[0])

    def open_write(self, start: str = "", end: str | None = None, by: str = "request") -> str:
        """The earliest pending write that forbids an answer about a range; empty: there is none.

        Args:
            start: exclusive.
            end: inclusive; None: up to now.
            by: ``request`` or ``completion``: what start and end are.
        """
        if by == "completion":
            if end is None or end <= max((done for _, done in self.versions), default=""):
                return ""  # what is pending will be completed later
            start = ""
        until = end or max((requested for requested, _ in self.versions), default="")
        rows = (p.instant for p in self._pending if p.operation not in ("COMPACT", "CLUSTER"))
        return min((i for i in rows if start < i <= until), default="")

    @property
    def now(self) -> str:
        """A time that is later than that of every write so far."""
        return self._tick()

    def archive(self) -> None:
        """Moves some of the oldest instants to the archived timeline.

        Not past a pending one, nor past one whose replaced groups still have files.
        """
        left = [
            g.replaced
            for g in self._gone
            if any(f.path in self.table.sizes for f in _files(g, *g.old))
        ]
        newest = [max(requested for requested, _ in self.versions)] if self.versions else []
        left += [self._saved[0]] if self._saved else []
        stop = min([p.instant for p in self._pending] + left + newest, default="")
        names = (path.name for path in self.table.timeline.iterdir() if path.is_file())
        known = sorted({name.partition(".")[0].partition("_")[0] for name in names})
        able = [instant for instant in known if instant.isdigit() and instant < stop]
        if able:
            self.table.archive(*able[: self._random.randint(1, len(able))])

    def items(self, *, as_of: str | None = None, completed_by: str | None = None) -> list[Item]:
        """What a snapshot must hold, sorted."""

        def counts(times: tuple[str, str]) -> bool:
            requested, completed = times
            return (as_of is None or requested <= as_of) and (
                completed_by is None or completed <= completed_by
            )

        return sorted(
            item
            for item, times in self.wrote.items()
            if counts(times) and not (item in self.removed and counts(self.removed[item]))
        )

    def slices(self) -> dict[tuple[str, str], tuple[str, list[str]]]:
        """What the newest snapshot consists of: paths by partition and group."""
        return {
            (g.partition, g.id): (
                g.base.path if g.base else "",
                [f.path for f in sorted(g.logs, key=_merge_order)],
            )
            for g in self._groups
            if g.base or g.logs
        }

    def _tick(self) -> str:
        self._clock += self._random.randint(1, 3)
        return str(self._clock)

    def _new_group(self) -> Group:
        self._next += 1
        return Group(self._random.choice(self._partitions), f"g{self._next:03}-0")

    def _some(self, groups: list[Group]) -> list[Group]:
        return self._random.sample(groups, self._random.randint(1, min(3, len(groups))))

    def _start(self, pending: Pending) -> None:
        begun = pending.action
        if pending.operation == "COMPACT":
            begun = "compaction"
        elif pending.operation == "CLUSTER" and self.table.version >= 8:
            begun = "clustering"
        self.table.begin(pending.instant, begun, inflight=self._random.random() < 0.8)
        if pending.action == "replacecommit" and (
            pending.operation == "CLUSTER" or self._random.random() < 0.5
        ):
            self.table.state(f"{pending.instant}.{begun}.requested", plan_body(pending.operation))
        self._pending.append(pending)
        if pending.operation not in ("COMPACT", "CLUSTER") and self._random.random() < 0.6:
            self._complete(pending)

    def _insert(self) -> None:
        instant = self._tick()
        made = [self._new_group() for _ in range(self._random.randint(1, 3))]
        action = "deltacommit" if self.merge_on_read else "commit"
        files = [(g, self._base(g, instant, [(instant, g.id)])) for g in made]
        self._start(Pending(instant, action, [], files, made, operation="INSERT"))

    def _insert_log(self) -> None:
        instant = self._tick()
        group = self._new_group()
        file = self._log(group, instant, instant, number=1)
        self._start(Pending(instant, "deltacommit", [], [(group, file)], [group]))

    def _update(self) -> None:
        instant = self._tick()
        as_log = self.merge_on_read and self._random.random() < 0.8
        able = [
            g
            for g in self._groups
            if (g.busy >= 0 if as_log else g.busy == 0 and not g.logs and not g.compaction)
        ]
        if not able:
            return
        groups = self._some(able)
        files = []
        for g in groups:
            if as_log:
                g.busy += 1
                named = instant if self.table.version >= 8 else (g.compaction or g.base_instant)
                files.append((g, self._log(g, named, instant, previous=g.base_instant)))
            else:
                g.busy = -1
                items = [*(self.held[g.base.path] if g.base else []), (instant, g.id)]
                files.append((g, self._base(g, instant, items, previous=g.base_instant)))
        action = "deltacommit" if self.merge_on_read else "commit"
        self._start(Pending(instant, action, groups, files))

    def _compact(self) -> None:
        # Before version 8 a compaction is scheduled only while nothing is being written.
        if self.table.version < 8 and any(
            p.operation not in ("COMPACT", "CLUSTER") for p in self._pending
        ):
            return
        able = [g for g in self._groups if g.logs and g.busy >= 0 and not g.compaction]
        if not able:
            return
        groups = self._some(able)
        instant = self._tick()
        files, inputs = [], []
        for g in groups:
            g.compaction = instant
            items = [item for f in ([g.base] if g.base else []) for item in self.held[f.path]]
            items += [item for f in g.logs for item in self.held[f.path]]
            inputs.append(list(g.logs))
            files.append((g, self._base(g, instant, items, previous=g.base_instant)))
        self._start(Pending(instant, "commit", groups, files, [], inputs, "COMPACT"))

    def _replace(self, groups: list[Group], operation: str) -> None:
        instant = self._tick()
        items = [
            item
            for g in groups
            for f in [*([g.base] if g.base else []), *g.logs]
            for item in self.held[f.path]
        ]
        for g in groups:
            g.busy = -1
        made: list[Group] = []
        files: list[tuple[Group, Written]] = []
        if operation == "CLUSTER" or self._random.random() < 0.7:
            new = self._new_group()
            new.partition = groups[0].partition
            held = items if operation == "CLUSTER" else [(instant, new.id)]
            made, files = [new], [(new, self._base(new, instant, held))]
        self._start(Pending(instant, "replacecommit", groups, files, made, operation=operation))

    def _cluster(self) -> None:
        able = [g for g in self._groups if g.busy == 0 and not g.compaction]
        if able:
            chosen = [g for g in able if g.partition == able[0].partition]
            self._replace(self._some(chosen), "CLUSTER")

    def _overwrite(self) -> None:
        partition = self._random.choice(self._partitions)
        groups = [g for g in self._groups if g.partition == partition]
        if groups and all(g.busy == 0 and not g.compaction for g in groups):
            self._replace(groups, "INSERT_OVERWRITE")

    def _finish(self) -> None:
        if self._pending:
            self._complete(self._random.choice(self._pending))

    def _complete(self, pending: Pending) -> None:
        self._pending.remove(pending)
        end = self._tick()
        times = (pending.instant, end)
        replaces = pending.action == "replacecommit"
        for g, file in pending.files:
            if file.name.startswith("."):
                g.logs.append(file)
            else:
                gone = pending.inputs[pending.groups.index(g)] if pending.inputs else list(g.logs)
                g.old += [*([g.base] if g.base else []), *gone]
                g.logs = [f for f in g.logs if f not in gone]
                g.base = file
            if pending.operation not in ("COMPACT", "CLUSTER"):
                self.wrote[(pending.instant, g.id)] = times
            g.base_instant = g.base_instant if file.name.startswith(".") else pending.instant
            g.base_instant = g.base_instant or pending.instant
        self._groups += pending.made
        replaced: dict[str, list[str]] = {}
        for g in pending.groups:
            if pending.operation == "COMPACT":
                g.compaction = ""
            elif g.busy > 0:
                g.busy -= 1
            else:
                g.busy = 0
            if not replaces:
                continue
            replaced.setdefault(g.partition, []).append(g.id)
            self._groups.remove(g)
            self._gone.append(g)
            g.replaced = pending.instant
            if pending.operation != "CLUSTER":
                for f in [*([g.base] if g.base else []), *g.logs]:
                    self.removed.update((item, times) for item in self.held[f.path])
        self.table.commit(
            pending.instant,
            [file for _, file in pending.files],
            action=pending.action,
            end=end,
            operation=pending.operation,
            replaced=replaced,
            begin=False,
        )
        self.versions.append(times)

    def _roll_back(self) -> None:
        able = [p for p in self._pending if p.operation != "COMPACT"]
        if not able:
            return
        pending = self._random.choice(able)
        self._pending.remove(pending)
        instant = self._tick()
        self.table.begin(instant, "rollback")
        for _, file in pending.files:
            # A task that its driver lost may write, or keep, its file after the rollback.
            if self._tidy or self._random.random() < 0.7:
                self.table.delete(file)
        for g in pending.groups:
            g.busy = g.busy - 1 if g.busy > 0 else 0
        self.table.forget(pending.instant)
        body = {"commitsRollback": [pending.instant]}
        self.table.complete(instant, "rollback", body, self._tick())

    def _save(self) -> None:
        """A savepoint of the newest version, while nothing is pending."""
        if self._pending or self._saved or not self.versions:
            return
        instant = max(requested for requested, _ in self.versions)
        self._saved = instant, deepcopy(self._state)
        self._kept = {f.path for g in self._groups for f in _files(g)}
        self.table.begin(instant, "savepoint")
        self.table.complete(instant, "savepoint", {"comments": ""}, self._tick())

    def _restore(self) -> None:
        """Undoes all that was written since the savepoint, also what is pending."""
        if not self._saved or self._random.random() < 0.5:
            return
        saved, state = self._saved
        undone = [p.instant for p in self._pending]
        undone += [requested for requested, _ in self.versions if requested > saved]
        instant = self._tick()
        self.table.begin(instant, "restore")
        for path in [path for path in self.table.sizes if self._writers[path] in undone]:
            if self._tidy or self._random.random() < 0.7:
                del self.table.sizes[path]
        for each in undone:
            self.table.forget(each)
        self._pending = []
        self._state = deepcopy(state)
        self.table.complete(instant, "restore", {"instantsToRollback": undone}, self._tick())

    @property
    def _state(self) -> _State:
        return self.wrote, self.removed, self.versions, self._groups, self._gone

    @_state.setter
    def _state(self, state: _State) -> None:
        self.wrote, self.removed, self.versions, self._groups, self._gone = state

    def _clean(self) -> None:
        old = [f for g in [*self._groups, *self._gone] for f in g.old]
        old += [f for g in self._gone for f in [*([g.base] if g.base else []), *g.logs]]
        old = [f for f in old if f.path in self.table.sizes and f.path not in self._kept]
        if not old:
            return
        chosen = self._random.sample(old, self._random.randint(1, len(old)))
        instant = self._tick()
        self.table.begin(instant, "clean")
        partitions: dict[str, dict[str, list[str]]] = {}
        for file in chosen:
            self.table.delete(file)
            entry = partitions.setdefault(
                file.partition, {"deletePathPatterns": [], "successDeleteFiles": []}
            )
            entry["deletePathPatterns"].append(file.name)
            entry["successDeleteFiles"].append(f"{self.table.uri}/{file.path}")
        body = {"earliestCommitToRetain": "", "partitionMetadata": partitions}
        self.table.complete(instant, "clean", body, self._tick())

    def _base(
        self, group: Group, instant: str, items: list[Item], previous: str = "null"
    ) -> Written:
        file = self.table.base(
            group.partition, group.id, instant, previous=previous, size=self._random.randint(1, 99)
        )
        self.held[file.path] = items
        self._writers[file.path] = instant
        return file

    def _log(
        self, group: Group, named: str, instant: str, previous: str = "null", number: int = 0
    ) -> Written:
        self._next += 1
        file = self.table.log(
            group.partition,
            group.id,
            named,
            number=number or self._next,
            previous=previous,
            size=self._random.randint(1, 99),
        )
        self.held[file.path] = [(instant, group.id)]
        self._writers[file.path] = instant
        return file


def _files(group: Group, *more: Written) -> list[Written]:
    return [*([group.base] if group.base else []), *group.logs, *more]


def _merge_order(log: Written) -> tuple[str, int]:
    named, _, rest = log.name.rpartition("_")[0].rpartition("_")[2].partition(".")
    return named, int(rest.rpartition(".")[2])
