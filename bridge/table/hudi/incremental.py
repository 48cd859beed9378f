"""The file slices that hold what changed between two points of the timeline.

They are slices of the table as of the end, of the groups that some instant of the range wrote to. A
row changed in the range if its ``_hoodie_commit_time`` is one of those instants: readers merge a
slice whole and then leave out the other rows. Compaction changes no row, and clustering keeps the
commit times of the rows that it moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from bridge.kernel.errors import InvalidRequest, ReadVersionNotFound
from bridge.table.hudi.files.file_names import parse_names
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.timeline.commit_metadata import CommitMetadata
from bridge.table.hudi.timeline.pending_writes import refuse_open

_NO_ROWS = frozenset({"COMPACT", "LOG_COMPACT", "INDEX"})


@dataclass(frozen=True, slots=True)
class HudiChanges:
    """What changed in a range.

    Attributes:
        slices: of the table as of the end of the range.
        instants: commit times of the rows that changed in it.
    """

    slices: FileSlices
    instants: frozenset[str]


def changes_between(
    view: FileSystemView,
    start: str,
    end: str | None = None,
    *,
    files: FileListing | None = None,
) -> HudiChanges:
    """What changed after ``start``, up to and with ``end``.

    Both are completion times from table version 8 on, and instants (requested times) before.

    Args:
        end: None: up to now.
        files: as for `FileSystemView.slices`.

    Errors:
        InvalidRequest: the table has no commit times.
        ReadVersionNotFound: commits of the range were archived and are not known any more, files of
            the version at its end were deleted, or a write that may belong to the range is pending.
        FileCorrupt, StorageFailure.
    """
    config, timeline = view.config, view.timeline
    if not config.has_meta_fields:
        raise InvalidRequest(
            f"{config.name} is written without meta fields, so its rows have no commit times",
            "read a snapshot",
        )
    when = {
        i.requested: i.completion or i.requested if config.completes else i.requested
        for i in timeline.completed.values()
    }
    newest = view.last_completion or max(when.values(), default="")
    what = f"the changes after {start or 'the beginning'}"
    if not config.completes:
        # A consumer goes on from the newest instant, and would never see an older one.
        refuse_open(view, what, end or newest, start)
    elif end is not None and end > newest:
        refuse_open(
            view, what, end, closed=newest
        )  # it will be completed later, and perhaps before the end
    chosen = [i for i in when if start < when[i] and (end is None or when[i] <= end)]
    commits = dict(zip(chosen, view.commits(timeline.completed[i] for i in chosen), strict=True))
    commits |= view.archived_commits(start, end)
    if start < timeline.first_active and (end is None or start < end):
        _refuse_lost(view, start, end, commits.values(), files)
    groups: dict[str, set[str]] = {}
    for commit in commits.values():
        if commit.operation in _NO_ROWS:
            continue
        names = iter(commit.names)
        for partition, count in zip(commit.partitions, commit.counts, strict=True):
            ids = (name.lstrip(".").partition("_")[0] for name in islice(names, count))
            groups.setdefault(partition, set()).update(ids)
    if not groups:
        return HudiChanges(view.slices(files=files, groups={}), frozenset(commits))
    if end is None or newest <= end:
        slices = view.slices(files=files, groups=groups)
    elif config.completes:
        slices = view.slices(completed_by=end, files=files, groups=groups)
    else:
        slices = view.slices(as_of=end, files=files, groups=groups)
    return HudiChanges(slices, frozenset(commits))


def _refuse_lost(
    view: FileSystemView,
    start: str,
    end: str | None,
    commits: Iterable[CommitMetadata],
    files: FileListing | None,
) -> None:
    """Errors: ReadVersionNotFound if commits of the range are not known any more."""
    config, found = view.config, frozenset[str]().union(*(c.previous for c in commits))
    if files is not None:
        found |= set(parse_names(files.names, config.base_format).instants.unique().to_pylist())
    within = (i for i in found if start < i and (end is None or i <= end))
    if any(map(view.is_lost, within)):
        raise ReadVersionNotFound(
            f"commits of {config.name} after {start or 'its beginning'} were archived, and their "
            "archive was deleted",
            f"begin at {view.timeline.first_active} or later, or read a snapshot",
        )
