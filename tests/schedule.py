"""In which order and in which process the tests of a run go, and which third a module is in.

Modules that use the same servers are one unit of work: one process of the run has it, so each
server is started once. Units are dealt as processes become free, the longest first. The seconds of
each module are in ``timings.json``, which ``pytest --write-timings`` writes from its own run.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import larger_in_full, tier

TIMINGS = Path(__file__).with_name("timings.json")
UNKNOWN_SECONDS = 5.0
# The servers of a unit, by the names of its modules; the first that matches.
_UNITS = (
    (
        "trino",
        r"engines/test_(trino|hudi|differential_trino|hive_segments|segment|sync_(hudi|rows))",
    ),
    (
        "hive",
        r"engines/test_(hive|differential_hive|publishing|sync_engines|(odd|text)_(values|texts))",
    ),
    ("spark", r"(engines/test_(spark|api_spark)|storage/test_load_on_spark)"),
    ("metastore", r"engines/test_(metastore|sync|sql_story)"),
)
_taken: dict[str, float] = defaultdict(float)


def module_of(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


@cache
def unit_of(module: str) -> str:
    """The unit of work that a module belongs to: its servers, or the module itself."""
    for name, pattern in _UNITS:
        if re.search(f"tests/{pattern}", module):
            return name
    return module


@cache
def _timings() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = json.loads(TIMINGS.read_text("utf-8"))
    return found


def seconds(module: str, of: str) -> float:
    """What a module took in a tier's run when it was last measured."""
    return _timings().get(module, {}).get(of, UNKNOWN_SECONDS)


def thirds(modules: list[str]) -> dict[str, int]:
    """Deals modules to thirds of about equal time, in all and with each kind of server.

    The longest go first; ties go by name.
    """
    dealt: dict[str, int] = {}
    of_all, of_servers = [0.0] * 3, defaultdict[str, list[float]](lambda: [0.0] * 3)
    for module in sorted(modules, key=lambda m: (-seconds(m, "rest"), m)):
        unit = unit_of(module)
        of_unit = of_servers["none" if unit == module else unit]
        loads = [of_all[k] + 2 * of_unit[k] for k in range(3)]
        dealt[module] = third = loads.index(min(loads))
        of_all[third] += seconds(module, "rest")
        of_unit[third] += seconds(module, "rest")
    return dealt


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("skipbridge")
    group.addoption("--third", type=int, choices=(0, 1, 2), help="of what --tier=full adds to fast")
    group.addoption("--rest", action="store_true", help="what --tier=full adds to fast")
    group.addoption("--write-timings", action="store_true", help="write tests/timings.json")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rest = config.option.rest or config.option.third is not None
    if rest:
        kept = [i for i in items if i.get_closest_marker("full") or _asks_more(i)]
        if config.option.third is not None:
            dealt = thirds(sorted({module_of(i.nodeid) for i in kept}))
            kept = [i for i in kept if dealt[module_of(i.nodeid)] == config.option.third]
        config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
        items[:] = kept
    of = "rest" if rest else tier()
    units: dict[str, float] = defaultdict(float)
    for module in {module_of(i.nodeid) for i in items}:
        units[unit_of(module)] += seconds(module, of)
    order = {name: k for k, name in enumerate(sorted(units, key=lambda u: (-units[u], u)))}
    items.sort(key=lambda item: order[unit_of(module_of(item.nodeid))])


def _asks_more(item: pytest.Item) -> bool:
    """Whether a fast test of a module asks its laws more often in full."""
    return item.get_closest_marker("fast") is not None and larger_in_full(item.module.__name__)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(module_of(nodeid))

    config.option.loadscopereorder = False
    return Units(config, log)


# Servers --------------------------------------------------------------------------------------

_running: dict[str, tuple[Any, Any]] = {}
_restarted: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Any:
    value = yield
    if fixturedef.scope == "session" and fixturedef.func.__module__.startswith("tests."):
        _running[fixturedef.argname] = (fixturedef, request)
    return value


def pytest_fixture_post_finalizer(fixturedef: Any) -> None:
    if fixturedef.scope == "session":
        _running.pop(fixturedef.argname, None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A server that died is named and started once more, with all that was made in it."""
    for name, (definition, request) in list(_running.items()):
        if name in _restarted or name not in item.fixturenames:  # type: ignore[attr-defined]
            continue
        server = getattr(definition.cached_result[0], "server", None)
        if server is not None and not server.alive:
            _restarted.add(name)
            print(f"\n{name} (process {server.pid}) died and is started once more: {server.log}")
            definition.finish(request)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The servers of a unit end with its last test."""
    if nextitem is None:
        return
    if unit_of(module_of(nextitem.nodeid)) != unit_of(module_of(item.nodeid)):
        for definition, request in reversed(list(_running.values())):
            definition.finish(request)


# Timings --------------------------------------------------------------------------------------


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _taken[module_of(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if not config.option.write_timings or hasattr(config, "workerinput"):
        return
    of = "rest" if config.option.rest or config.option.third is not None else tier()
    found = {module: dict(times) for module, times in _timings().items()}
    for module, taken in _taken.items():
        found.setdefault(module, {})[of] = round(taken, 1)
    lines = (f"  {json.dumps(m)}: {json.dumps(found[m], sort_keys=True)}" for m in sorted(found))
    TIMINGS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
