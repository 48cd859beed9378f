"""A log of real predicates: the columns and operators of each scan, and what pruning skipped.

Off unless a file is configured. Only its owner can read the file (mode 600). It is bounded by
rotating two halves, and holds one JSON object per line. A line holds no literal of a predicate
unless literals are switched on, since values may be confidential.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.expression.nodes import (
    BoundAnd,
    BoundExpression,
    BoundOr,
    BoundPredicate,
    reference_text,
)
from bridge.expression.parsing.text import format_bound
from bridge.planner.logged_predicate import to_plain
from bridge.planner.reports.report import PruneReport, Stage

_LONGEST_LINE = 8192
_STAGES = frozenset({"minmax", "listing", "attributes", "dynamic-filters", "limit", "top-n"})


@dataclass(frozen=True, slots=True)
class Logged:
    """One scan.

    Attributes:
        asked: columns and operators of the predicate's leaves, without partition keys.
        stages: for each stage the index, files in, files kept.
        text: the predicate with its values, if literals are switched on.
        tree: the predicate as `bridge.planner.logged_predicate` writes it; None if it was too long.
    """

    table: str
    at: float
    files: int
    kept: int
    asked: tuple[tuple[str, str], ...]
    stages: tuple[tuple[str, int, int], ...]
    text: str = ""
    tree: Any = None


class PredicateLog:
    """Appends scans; safe for threads and processes. A failed write is not an error.

    Args:
        limit: bytes of the current and the previous half together.
        literals: also record predicates with their values.
    """

    def __init__(self, path: Path, limit: int, *, literals: bool = False) -> None:
        self._path, self._limit, self._literals = path, limit, literals

    def record(self, predicate: BoundExpression, report: PruneReport) -> None:
        """Records a finished scan whose predicate has at least one data column."""
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
        for literals in (True, False) if self._literals else (False,):
            body["tree"] = to_plain(predicate, literals=literals)
            if len(line := _line(body)) <= _LONGEST_LINE:
                break
        else:
            del body["tree"]
            line = _line(body)
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
            os.write(descriptor, line)  # one write: lines of several processes do not mix
        finally:
            os.close(descriptor)


def _line(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


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
                yield reference_text(reference), op.value


def read_log(path: Path, table: str) -> list[Logged]:
    """The scans of one table, oldest first; incomplete lines are ignored."""
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
                        body.get("tree"),
                    )
                )
            except (ValueError, KeyError, TypeError):
                continue
    return found


def _older(path: Path) -> Path:
    return path.with_name(path.name + ".1")
