"""The active timeline of a Hudi table: one listing of one directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bridge.kernel.errors import FileCorrupt, UnsupportedTable
from bridge.storage.port import Storage
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.hudi.timeline.instant import Instant, State, parse_instant

_LARGEST_BODY = 1 << 30
"""Bytes. That of a commit of a million files has half of it."""
_COMMITS = frozenset({"commit", "deltacommit", "replacecommit"})


@dataclass(frozen=True)
class HudiTimeline:
    """Instants in their latest state, by requested time.

    Attributes:
        uri: the directory that was listed.
        completed: completed commits, deltacommits and replacecommits by requested time.
        pending: instants that are requested or inflight, of any action.
        first_active: where the active timeline starts: older instants were archived. Commits with
            a savepoint do not count, for archival may leave them behind, unless a restore left
            nothing else: then the newest of them. Empty: nothing is written.
    """

    uri: str
    instants: tuple[Instant, ...]
    completed: dict[str, Instant] = field(init=False, repr=False, compare=False)
    pending: tuple[Instant, ...] = field(init=False, repr=False, compare=False)
    first_active: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        done = {i.requested: i for i in self.instants if i.completed and i.action in _COMMITS}
        object.__setattr__(self, "completed", done)
        pending = tuple(i for i in self.instants if not i.completed)
        object.__setattr__(self, "pending", pending)
        kept = {i.requested for i in self.instants if i.action == "savepoint"}
        writes = {i.requested for i in self.instants if i.is_write}
        first = min(writes - kept, default=max(writes, default=""))
        object.__setattr__(self, "first_active", first)

    def of(self, *actions: str, state: State | None = State.COMPLETED) -> list[Instant]:
        """The instants of these actions in one state, or in any (None), by requested time."""
        return [i for i in self.instants if i.action in actions and state in (None, i.state)]

    def pending_of(self, *actions: str) -> list[Instant]:
        """The requested and inflight instants of these actions."""
        return [i for i in self.pending if i.action in actions]

    @property
    def last(self) -> Instant | None:
        """The completed write with the greatest requested time."""
        return self.completed[max(self.completed)] if self.completed else None

    @property
    def last_completion(self) -> str:
        """The greatest completion time of a write; empty before version 8, and without writes."""
        return max((i.completion or "" for i in self.completed.values()), default="")

    @property
    def savepoints(self) -> frozenset[str]:
        """Requested times of the commits that have a completed savepoint."""
        return frozenset(i.requested for i in self.of("savepoint"))

    def is_archived(self, requested: str) -> bool:
        """Whether an instant is older than the active timeline and not on it."""
        return requested < self.first_active and requested not in self.completed

    def lost_any(self, newer: HudiTimeline) -> bool:
        """Whether a newer timeline lacks one of these instants: archival, a restore, an upgrade."""
        return not {i.key for i in self.instants} <= {i.key for i in newer.instants}

    def uri_of(self, instant: Instant) -> str:
        """Where an instant's body is."""
        return f"{self.uri}/{instant.name}"

    def uris_of(self, instants: Sequence[Instant]) -> list[str]:
        """Where bodies are that will be held. Errors: FileCorrupt: one is too large."""
        for each in instants:
            if each.size > _LARGEST_BODY:
                raise FileCorrupt(
                    f"{self.uri_of(each)} has {each.size} bytes, and at most {_LARGEST_BODY} are "
                    "read",
                    "restore the file, or roll the instant back with Hudi's CLI",
                )
        return [self.uri_of(each) for each in instants]


def load_timeline(storage: Storage, config: HudiTableConfig) -> HudiTimeline:
    """Lists the active timeline. Names that Hudi ignores are ignored.

    Errors:
        UnsupportedTable: an upgrade or downgrade of the table was not finished.
    """
    listing = storage.list_all(config.timeline_uri, recursive=False)
    layout = 2 if config.completes else 1
    names = [uri.rpartition("/")[2] for uri in listing.paths.to_pylist()]
    files = zip(names, listing.sizes.tolist(), listing.modified.tolist(), strict=True)
    found = (parse_instant(name, layout, size, at) for name, size, at in files)
    return make_timeline(config.timeline_uri, (i for i in found if i is not None))


def refuse_unfinished_upgrade(storage: Storage, config: HudiTableConfig) -> None:
    """Call it after the timeline was listed. An upgrade moves instants from one directory to
    another, one by one, before it changes the table's version: a timeline may lack some of them.

    Errors:
        UnsupportedTable: there are instants where another table version has them.
    """
    meta = f"{config.base}/.hoodie"
    other, layout = (meta, 1) if config.completes else (f"{meta}/timeline", 2)
    if other == config.timeline_uri:
        return
    for uri in storage.list_all(other, recursive=False).paths.to_pylist():
        if parse_instant(uri.rpartition("/")[2], layout) is not None:
            raise UnsupportedTable(
                f"{config.base} has table version {config.version} and also the instant {uri}, so "
                "an upgrade or downgrade was not finished",
                "finish the upgrade or downgrade of the table with Hudi",
            )


def make_timeline(uri: str, states: Iterable[Instant]) -> HudiTimeline:
    """The timeline of all states found, in any order. Errors: UnsupportedTable."""
    latest: dict[tuple[str, str], Instant] = {}
    for instant in states:
        if instant.completion == "":
            raise UnsupportedTable(
                f"{uri}/{instant.name} has no completion time, so an upgrade was not finished",
                "finish the upgrade or downgrade of the table with Hudi",
            )
        other = latest.get(instant.key)
        if other is None or instant.state > other.state:
            latest[instant.key] = instant
    return HudiTimeline(uri, tuple(latest[key] for key in sorted(latest)))
