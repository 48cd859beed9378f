"""A planner server that answers."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.service.handler import PlannerHandler
from bridge.service.server import PlannerServer
from tests.support.lake import Lake


@dataclass
class Service:
    """A server that answers, and its parts."""

    lake: Lake
    server: PlannerServer
    handler: PlannerHandler
    endpoint: str
