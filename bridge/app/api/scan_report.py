"""The reports of a scan and of an index, as the Python API returns them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from bridge.planner.reports.document import report_document
from bridge.planner.reports.effectiveness import Effectiveness
from bridge.planner.reports.effectiveness_text import effectiveness_text
from bridge.planner.reports.report import PruneReport
from bridge.planner.reports.text import funnel


@dataclass(frozen=True, slots=True)
class ScanReport(PruneReport):
    """What each stage of a scan was given and kept, and why an index did not prune."""

    @staticmethod
    def of(report: PruneReport) -> ScanReport:
        """The same report with the methods of the API."""
        return ScanReport(*(getattr(report, field.name) for field in fields(PruneReport)))

    def __str__(self) -> str:
        """The funnel, as ``skipbridge explain`` prints it."""
        return funnel(self)

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Plain values, as ``skipbridge explain --output json`` prints them.

        Args:
            files: adds the URIs of the files kept.
        """
        return report_document(self, files=files)


@dataclass(frozen=True, slots=True)
class IndexReport(Effectiveness):
    """How much an index helps, by column."""

    @staticmethod
    def of(found: Effectiveness) -> IndexReport:
        """The same report with the methods of the API."""
        return IndexReport(*(getattr(found, field.name) for field in fields(Effectiveness)))

    def __str__(self) -> str:
        """Columns, indexes and advice, as ``skipbridge index report`` prints them."""
        return effectiveness_text(self)
