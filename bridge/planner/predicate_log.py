"""A log of real predicates: which columns queries ask about, how, and what was skipped for it.

Off unless a file is named. The file is the user's alone (mode 600), bounded, one JSON object a
line; two halves rotate. A line holds no value of a predicate unless literals are asked for: values
may be what must not be written elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bridge.expression.nodes import BoundAnd, BoundExpression, BoundOr, BoundPredicate, spelled
from bridge.expression.text import format_bound
from bridge.planner.report import PruneReport, Stage

_LONGEST_LINE = 8192
_STAGES = frozenset({"minmax", "listing", "attributes", "dynamic-filters", "limit", "top-n"})


@dataclass(frozen=True, slots=True)
class Logged:
    """One scan.

    Attributes:
        asked: columns and operators of its leaves; partition keys are left out.
        stages: index, files that came in, files that stayed.
        text: the predicate with its values, if literals were asked for.
    """

    table: str
    at: float
    files: int
    kept: int
    asked: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, int, int], ...]
    text: str = ""


class PredicateLog:
    """Appends scans; safe for threads and processes. A log that cannot be written is no error.

    Args:
        limit: bytes of the log and the half before it, together.
        literals: also keep predicates with their values.
    """

    def __init__(self, path: Path, limit: int, *, literals: bool = False) -> None:
        self._path, self._limit, self._literals = path, limit, literals

    def record(self, predicate: BoundExpression, report: PruneReport) -> None:
        """Notes a finished scan that asked about a column."""
        asked = sorted(set(leaves(predicate)))
        if not asked:
            return
        body = {
            "table": report.table,
            "at": round(time.time(), 1),
            "engine": report.engine,
            "files": report.files_total,
            "kept": report.files_kept,
            "asked": asked,
            "stages": [[_name(s), s.total, s.kept] for s in report.stages if s.name == "files"],
        }
        if self._literals:
            body["text"] = format_bound(predicate)[: _LONGEST_LINE // 2]
        line = json.dumps(body, separators=(",", ":")).encode() + b"\n"
        if len(line) > _LONGEST_LINE:
            return
        with contextlib.suppress(OSError):
            self._append(line)

    def _append(self, line: bytes) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if self._path.stat().st_size + len(line) > self._limit // 2:
                self._path.replace(_older(self._path))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, line)  # one call: lines of several processes do not mix
        finally:
            os.close(descriptor)


def _name(stage: Stage) -> str:
    """A stage's index as `index show` spells it."""
    plain = stage.index in _STAGES or not stage.columns
    return stage.index if plain else f"{stage.index}({stage.columns[0]})"


def leaves(predicate: BoundExpression) -> Iterator[tuple[str, str]]:
    """Column and operator of each leaf over data columns."""
    match predicate:
        case BoundAnd(children) | BoundOr(children):
            for child in children:
                yield from leaves(child)
        case BoundPredicate(op, reference):
            if not reference.partition and not reference.path[0].startswith("$"):
                yield spelled(reference), op.value


def read_log(path: Path, table: str) -> list[Logged]:
    """The scans of one table, oldest first; lines that are not whole are passed over."""
    found: list[Logged] = []
    for part in (_older(path), path):
        try:
            lines = part.read_bytes().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                body = json.loads(line)
                if body["table"] != table:
                    continue
                found.append(
                    Logged(
                        table,
                        float(body["at"]),
                        int(body["files"]),
                        int(body["kept"]),
                        tuple((str(c), str(o)) for c, o in body["asked"]),
                        tuple((str(i), int(t), int(k)) for i, t, k in body["stages"]),
                        str(body.get("text", "")),
                    )
                )
            except (ValueError, KeyError, TypeError):
                continue
    return found


def _older(path: Path) -> Path:
    return path.with_name(path.name + ".1")
