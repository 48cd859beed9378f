"""Plants the faults one after another, each in a copy of the sources, and asks its law."""

from __future__ import annotations

import queue
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.mutations.faults import Fault
from tests.mutations.laws import Law, LawFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
_COPIED = (
    "bridge",
    "skipbridge_geo",
    "tests",
    "trino_plugin_gen",
    "hive_hooks",
    "jvm_client",
    "docs",
)
_COPIED_FILES = ("pyproject.toml", "README.md")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "target", ".hypothesis", "build")


class WrongFault(Exception):
    """The text that a fault replaces is not in its file exactly once."""


@dataclass(slots=True)
class Asked:
    """What came of a law in one copy.

    Attributes:
        broken: the tests that failed, by seed.
        problem: why the law could not be asked.
    """

    broken: dict[int, list[str]] = field(default_factory=dict)
    built: str = ""
    problem: str = ""
    seconds: float = 0.0

    @property
    def caught_by(self) -> list[str]:
        return sorted({test.partition("[")[0] for tests in self.broken.values() for test in tests})

    @property
    def caught(self) -> int:
        """Under how many seeds."""
        return sum(map(bool, self.broken.values()))


def planted(fault: Fault, root: Path = ROOT) -> str:
    """The source with the fault in it.

    Errors:
        WrongFault
    """
    source = (root / fault.file).read_text()
    if source.count(fault.text) != 1:
        raise WrongFault(
            f"{fault.name}: {fault.file} has {fault.text!r} {source.count(fault.text)} times, not "
            "once: write the fault anew for the source as it is"
        )
    return source.replace(fault.text, fault.wrong)


def run(
    faults: Sequence[Fault], seeds: Sequence[int], jobs: int, tell: Callable[[str], None]
) -> tuple[dict[Law, Asked], dict[Fault, Asked]]:
    """Asks each law of the sources as they are, and then of each fault."""
    for fault in faults:
        planted(fault)
    laws = list(dict.fromkeys(fault.law for fault in faults))
    with (
        tempfile.TemporaryDirectory(prefix="skipbridge-mutations-") as directory,
        ThreadPoolExecutor(jobs) as pool,
    ):
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            copies.put(_copied(Path(directory) / str(number)))

        def control(law: Law) -> Asked:
            with _one(copies) as copy:
                asked = _asked(law, copy, seeds)
            tell(f"as it is: {law.places()[0][0]} {asked.problem or asked.caught_by or 'holds'}")
            return asked

        def catch(fault: Fault) -> Asked:
            with _one(copies) as copy, _planted(fault, copy):
                asked = _asked(fault.law, copy, seeds)
            tell(f"{fault.name}: caught under {asked.caught} of {len(seeds)} {asked.problem}")
            return asked

        # The longest first: what is built.
        controls = {law: pool.submit(control, law) for law in reversed(laws)}
        found = {fault: pool.submit(catch, fault) for fault in reversed(faults)}
        return (
            {law: controls[law].result() for law in laws},
            {fault: found[fault].result() for fault in faults},
        )


def _copied(copy: Path) -> Path:
    for name in _COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=_LEFT_OUT, symlinks=True)
    for name in _COPIED_FILES:
        shutil.copy2(ROOT / name, copy / name)
    return copy


@contextmanager
def _one(copies: queue.Queue[Path]) -> Iterator[Path]:
    copy = copies.get()
    try:
        yield copy
    finally:
        copies.put(copy)


@contextmanager
def _planted(fault: Fault, copy: Path) -> Iterator[None]:
    path = copy / fault.file
    right, wrong = path.read_text(), planted(fault, copy)
    try:
        _write(path, wrong)
        yield
    finally:
        _write(path, right)


def _write(path: Path, source: str) -> None:
    """A compiled form of the same second and size would be taken for that of this source."""
    path.write_text(source)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _asked(law: Law, copy: Path, seeds: Sequence[int]) -> Asked:
    asked = Asked()
    started = time.perf_counter()
    try:
        asked.built = law.prepare(copy)
        for seed in seeds:
            asked.broken[seed] = law.broken(copy, seed)
    except LawFailed as problem:
        asked.problem = str(problem)
    asked.seconds = time.perf_counter() - started
    return asked
