"""A reader that ends its process, or never ends, costs its file's answer and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridge.kernel.errors import EnvironmentMissing, FileCorrupt, FileUnreadable
from bridge.storage.child import ChildReader
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import Storage
from bridge.storage.reading.source import WHOLE, open_source


def act(storage: Storage, uri: str, size: int) -> tuple[int, int, bytes]:
    """Does what the file's name says; else answers with its process and the end of the file."""
    match uri.rpartition("/")[2]:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "leave":
            os._exit(3)
        case "loop":
            while True:
                pass
        case "sleep":
            while True:
                time.sleep(1)
        case "killed":  # as the kernel does where memory is short
            os.kill(os.getpid(), signal.SIGKILL)
        case "memory":
            raise MemoryError("malloc of size 64 failed")
        case "raise":
            raise ValueError("what was found\nmore")
        case "corrupt":
            raise FileCorrupt("one sentence", "the remedy")
    source = open_source(storage, uri, size)
    source.seek(size - 4)
    return os.getpid(), size, source.read(4)


def unlike(storage: Storage, uri: str, size: int) -> object:
    os.write(int(sys.argv[1]), b"\0\0\0\4oops")  # what a child with damaged memory may say
    return None


@pytest.fixture(scope="module")
def reader() -> Iterator[ChildReader[tuple[int, int, bytes]]]:
    reader = ChildReader(act, cpu_seconds=1)
    yield reader
    reader.close()


def _read(
    reader: ChildReader[tuple[int, int, bytes]], path: Path, size: int = 8
) -> tuple[int, int, bytes]:
    if not path.exists():
        with path.open("wb") as file:
            file.truncate(size)
            file.seek(size - 4)
            file.write(b"last")
    return reader.read(LocalStorage(), f"file://{path}", size)


def test_27_a_file_that_ends_its_reader(
    reader: ChildReader[tuple[int, int, bytes]], tmp_path: Path
) -> None:
    first, *rest = _read(reader, tmp_path / "whole")
    assert rest == [8, b"last"]
    assert first != os.getpid()
    for name, problem in (
        ("crash", "was ended by SIGSEGV"),
        ("leave", "ended with exit code 3"),
        ("loop", "took too much processor time"),
    ):
        assert _read(reader, tmp_path / "whole")[1:] == (8, b"last")
        with pytest.raises(FileCorrupt, match=problem) as raised:
            _read(reader, tmp_path / name)
        assert name in raised.value.message
    assert _read(reader, tmp_path / "whole")[0] != first


def test_what_may_be_the_machines_fault_is_not_called_damage(
    reader: ChildReader[tuple[int, int, bytes]], tmp_path: Path
) -> None:
    with pytest.raises(FileUnreadable, match="was ended by SIGKILL"):
        _read(reader, tmp_path / "killed")
    with pytest.raises(FileUnreadable, match="MemoryError: malloc of size 64 failed"):
        _read(reader, tmp_path / "memory")
    assert _read(reader, tmp_path / "whole")[2] == b"last"


def test_one_child_reads_many_files_and_survives_errors(
    reader: ChildReader[tuple[int, int, bytes]], tmp_path: Path
) -> None:
    child, size, end = _read(reader, tmp_path / "large", WHOLE + 1)  # by its ranges
    assert (size, end) == (WHOLE + 1, b"last")
    with pytest.raises(FileUnreadable, match=r"raise: cannot be read: ValueError: what was found"):
        _read(reader, tmp_path / "raise")
    with pytest.raises(FileCorrupt) as raised:
        _read(reader, tmp_path / "corrupt")
    assert (raised.value.message, raised.value.hint) == ("one sentence", "the remedy")
    assert _read(reader, tmp_path / "whole")[0] == child
    (tmp_path / "large").write_bytes(b"cut since it was listed")
    with pytest.raises(FileUnreadable):
        _read(reader, tmp_path / "large", WHOLE + 1)
    os.kill(_read(reader, tmp_path / "whole")[0], signal.SIGKILL)  # while it has nothing to do
    assert _read(reader, tmp_path / "whole")[2] == b"last"


def test_threads_share_as_many_children_as_there_are_processors(
    reader: ChildReader[tuple[int, int, bytes]], tmp_path: Path
) -> None:
    _read(reader, tmp_path / "whole")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: _read(reader, tmp_path / "whole"), range(40)))
    assert {end for _, _, end in found} == {b"last"}
    assert len({child for child, _, _ in found}) <= (os.cpu_count() or 1)


def test_27_a_child_that_says_what_none_says(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    reader = ChildReader(unlike)
    with pytest.raises(FileCorrupt, match="the process that read it"):
        reader.read(LocalStorage(), f"file://{tmp_path}/f", 1)
    reader.close()


def test_no_child_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"x")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(EnvironmentMissing, match="it ended with exit code 1"):
        ChildReader(act).read(LocalStorage(), f"file://{tmp_path}/f", 1)


_PARENT = """
import os, sys
from pathlib import Path
from threading import Thread
import test_child_reader as t
reader = t.ChildReader(t.act)
child = t._read(reader, Path(sys.argv[1]) / "whole")[0]
forked = os.fork()
if not forked:
    own = t._read(reader, Path(sys.argv[1]) / "whole")[0]
    reader.close()
    os.write(1, f"{own} ".encode())
    os._exit(0)
os.waitpid(forked, 0)
held = os.fork()  # has a copy of everything, and outlives its parent
if not held:
    sys.stdin.read()
    os._exit(0)
Thread(target=t._read, args=(reader, Path(sys.argv[1]) / "sleep")).start()
while not reader._idle == []:
    pass
print(child, flush=True)
"""


def test_no_child_outlives_its_parent(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        forks_own, child = map(int, parent.stdout.readline().split())
        assert forks_own != child
        os.kill(child, 0)
        parent.kill()
        parent.wait()
        while _runs(child):
            time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def numbers(storage: Storage, uri: str, size: int) -> Iterator[int]:
    """Items of a function whose library reads the file in a thread of its own."""
    with ThreadPoolExecutor(1) as threads:
        ahead = [threads.submit(storage.read_ranges, uri, [(i, i + 1)]) for i in range(200)]
        for i, read in enumerate(ahead):
            yield i
            yield read.result()[0][0]


def test_a_library_that_reads_in_a_thread_gets_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(200)) + bytes(WHOLE))
    stream: ChildReader[int] = ChildReader(numbers)
    found = list(stream.stream(LocalStorage(), f"file://{path}", WHOLE + 200))
    stream.close()
    assert found == [each for i in range(200) for each in (i, i)]
