"""The report of a scan, as the Python API returns it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from bridge.planner.report import PruneReport
from bridge.report.document import report_document


@dataclass(frozen=True, slots=True)
class ScanReport(PruneReport):
    """What each stage of a scan was given and kept, and why an index did not prune."""

    @staticmethod
    def of(report: PruneReport) -> ScanReport:
        """The same report with the methods of the API."""
        return ScanReport(*(getattr(report, field.name) for field in fields(PruneReport)))

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """Plain values, as ``skipbridge explain --output json`` prints them.

        Args:
            files: adds the URIs of the files kept.
        """
        return report_document(self, files=files)
