"""Reads a file in a child process, so that a damaged file can crash only that process.

Arrow's ORC reader trusts lengths that it decodes from the data. No check finds such files
beforehand, and no handler in this process survives the crash. The child has no storage access; it
requests bytes from its parent. It is spawned, not forked, and reused for the next file. It exits
when its parent is gone.

The law: each file yields its reader's result or an error, and no file ends this process. Its bytes
may state any amount of work and memory, so it gets what its size allows. A failure that may be the
machine's fault, such as lack of memory, is not blamed on the file.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

from bridge.kernel.errors import BridgeError, EnvironmentMissing, FileCorrupt, FileUnreadable
from bridge.storage.port import Range, Storage
from bridge.storage.reading.source import WHOLE

T = TypeVar("T")
_CPU_SECONDS = 30
"""CPU time for one file, plus two seconds per MiB. Healthy files need a hundredth of it."""
_MEMORY = 1 << 30
"""Bytes of memory for a file, besides the process's own and `_PER_BYTE` for each byte of it."""
_PER_BYTE = 32
_IDLE = 8
"""Children that are kept for the next files."""
_AHEAD = 2
"""Items that a child makes ahead. Most files have fewer, and leave their child to the next one."""
_LONGEST = 1 << 30
_HINT = "rewrite the file"
_AGAIN = "try again; if it stays so, rewrite the file"
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""Signals that no reader causes: the kernel (out of memory) or a user ended the child."""
_WANTED, _ITEM, _END = "wanted", "item", "end"
"""What a child sends: ranges of the file that it wants, an item of its answer, or its end."""
_ENVIRONMENT = {"MIMALLOC_ARENA_EAGER_COMMIT": "0"}
"""Arrow's allocator else takes a GiB at once, and a limit of memory says nothing."""
_START = (
    "import sys; sys.path[:] = sys.argv[4:]; from bridge.storage.child import serve; "
    "serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))"
)


class ChildReader(Generic[T]):
    """Calls a function in child processes. Thread-safe; each call has a child of its own.

    Args:
        function: a module-level function, found by its name. It takes a storage (``read`` and
            ``read_ranges`` for this file only), a URI, a size, and what else a call gives. Its
            result is pickled. Errors of this package reach the caller unchanged, and any other as
            FileUnreadable.
        cpu_seconds: CPU time for one file, plus two seconds per MiB. CPU time, not wall time, so
            that a busy machine fails no file.
    """

    def __init__(self, function: Callable[..., T], *, cpu_seconds: int = _CPU_SECONDS) -> None:
        self._function = f"{function.__module__}:{function.__qualname__}"
        self._cpu_seconds = cpu_seconds
        self._reset()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self.close)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(os.cpu_count() or 1)
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()

    def _forked(self) -> None:
        """Closes the pipes in a forked copy, or children would not see their parent's end."""
        for child in list(self._all):
            child.connection.close()
        self._reset()

    def read(self, storage: Storage, uri: str, size: int, *more: Any, ahead: bool = True) -> T:
        """The function's result for a file.

        Args:
            more: further arguments of the function; they are pickled.
            ahead: a small file is read before the child asks for it, as most functions need it.

        Errors:
            FileCorrupt: raised by the function, or the file crashed the child or took too long.
            FileUnreadable: the child was killed, perhaps for lack of memory, or the function raised
                an unexpected error.
            EnvironmentMissing: no child can be started.
            Errors of the function and of the storage.
        """
        whole = storage.read(uri) if ahead and size <= WHOLE else None
        with self._slots:
            child = self._take(uri, size, whole, more)
            _, answer = self._answer(child, storage, uri)
            self._keep(child)
        if isinstance(answer, BridgeError):
            raise answer
        return cast(T, answer)

    def stream(self, storage: Storage, uri: str, size: int, *more: Any) -> Iterator[Any]:
        """The items of the iterator that the function returns, made a few ahead of the caller.

        A child that waits for the caller does not count as one that works.

        Errors: as `read`.
        """
        whole = storage.read(uri) if size <= WHOLE else None
        child: _Child | None = None
        while True:
            found: list[Any] = []
            with self._slots:
                if child is None:
                    child = self._take(uri, size, whole, more)
                else:
                    child.go_on()
                kind, answer = self._answer(child, storage, uri)
                while kind == _ITEM:
                    found.append(answer)
                    if len(found) == _AHEAD:
                        break
                    child.go_on()
                    kind, answer = self._answer(child, storage, uri)
                if kind == _END:
                    self._keep(child)
            try:
                yield from found
            except BaseException:
                if kind == _ITEM:
                    self._drop(child)
                raise
            if isinstance(answer, BridgeError):
                raise answer
            if kind == _END:
                return

    def _answer(self, child: _Child, storage: Storage, uri: str) -> tuple[str, Any]:
        """The child's next answer. Drops the child if there is none."""
        try:
            return child.answer(storage, uri)
        except BaseException as error:
            self._drop(child)
            if isinstance(error, _Ended):
                what = f"{uri}: the process that read it {child.end()}"
                if child.ended_from_outside():
                    raise FileUnreadable(what, _AGAIN) from None
                raise FileCorrupt(what, _HINT) from None
            raise

    def _keep(self, child: _Child) -> None:
        with self._lock:
            spare = len(self._idle) >= _IDLE
            if not spare:
                self._idle.append(child)
        if spare:
            self._drop(child)

    def _take(self, uri: str, size: int, whole: bytes | None, more: tuple[Any, ...]) -> _Child:
        """A child that has started on a file. Skips children that ended while idle."""
        while True:
            with self._lock:
                child = self._idle.pop() if self._idle else None
            fresh = child is None
            if child is None:
                child = _Child(self._function, self._cpu_seconds)
                with self._lock:
                    self._all.add(child)
            try:
                child.begin(uri, size, whole, more)
                return child
            except BaseException as error:
                self._drop(child)
                if not isinstance(error, _Ended):
                    raise
                if fresh:
                    raise _no_child(f"it {child.end()}") from None

    def _drop(self, child: _Child) -> None:
        with self._lock:
            self._all.discard(child)
        child.end()

    def close(self) -> None:
        """Ends all children. The next call starts a new one."""
        with self._lock:
            ending, self._idle, self._all = list(self._all), [], set()
        for child in ending:
            child.end()


def storage_in_memory(content: bytes) -> Storage:
    """The storage of one file that is in memory, as a child's function uses it."""
    return cast(Storage, _Held(content))


class _Held:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, uri: str) -> bytes:
        return self._content

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        return [self._content[begin:end] for begin, end in ranges]


class _Ended(Exception):
    """The child is gone or sent an invalid message."""


class _Child:
    def __init__(self, function: str, cpu_seconds: int) -> None:
        self.killed = False
        self.connection, there = Pipe()
        arguments = [str(there.fileno()), function, str(cpu_seconds), *sys.path]
        with there:
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _START, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[there.fileno()],
                    env=os.environ | _ENVIRONMENT,
                )
            except (OSError, ValueError) as error:
                self.connection.close()
                raise _no_child(str(error)) from error
        try:
            problem = self.connection.recv_bytes(_LONGEST).decode()
        except (OSError, EOFError):
            problem = f"it {self.end()}"
        except BaseException:
            self.end()
            raise
        if problem:
            self.end()
            raise _no_child(problem)

    def begin(self, uri: str, size: int, whole: bytes | None, more: tuple[Any, ...]) -> None:
        self._send(pickle.dumps((uri, size, whole is not None, more)))
        if whole is not None:
            self._send(whole)
        self._received()

    def go_on(self) -> None:
        with contextlib.suppress(_Ended):  # its answer tells
            self._send(b"")

    def answer(self, storage: Storage, uri: str) -> tuple[str, Any]:
        while True:
            kind, answer = self._received()
            if kind != _WANTED:
                return kind, answer
            for part in storage.read_ranges(uri, answer):
                self._send(part)

    def _send(self, part: bytes) -> None:
        try:
            self.connection.send_bytes(part)
        except OSError as error:
            raise _Ended from error

    def _received(self) -> tuple[str, Any]:
        try:
            kind, answer = pickle.loads(self.connection.recv_bytes(_LONGEST))
        except Exception as error:  # the child is gone or its memory is damaged
            raise _Ended from error
        return kind, answer

    def end(self) -> str:
        """Ends the child if it still runs, and says how it ended."""
        self.connection.close()
        try:
            code = self.process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            self.killed = True
            self.process.kill()
            code = self.process.wait()
        if self.killed:
            return "said what cannot be understood"
        if code >= 0:
            return f"ended with exit code {code}"
        if -code == signal.SIGXCPU:
            return "took too much processor time, as in an endless loop"
        return f"was ended by {signal.Signals(-code).name}"

    def ended_from_outside(self) -> bool:
        """Whether neither its reader nor this program ended it."""
        code = self.process.returncode
        return not self.killed and code is not None and -code in _FROM_OUTSIDE


def _no_child(problem: str) -> EnvironmentMissing:
    return EnvironmentMissing(
        f"no process to read files in can be started with {sys.executable}: {problem}",
        "it needs the packages that this process has, and leave to start processes",
    )


def serve(descriptor: int, name: str, cpu_seconds: int) -> None:
    """Runs in the child: reads one file after another until the parent is gone."""
    connection = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # without memory, kill this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    try:
        module, _, qualified = name.partition(":")
        function = getattr(importlib.import_module(module), qualified)
    except BaseException:
        connection.send_bytes(traceback.format_exc().encode("utf-8", "backslashreplace"))
        return
    inbox: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    connection.send_bytes(b"")
    own = _data_bytes()
    while True:
        uri, size, held, more = pickle.loads(inbox.get())
        storage = _Parent(connection, inbox, size, inbox.get() if held else None)
        connection.send_bytes(pickle.dumps((_WANTED, [])))
        _limit(cpu_seconds + 2 * size // 2**20)
        if own:
            _bound(resource.RLIMIT_DATA, own + _MEMORY + _PER_BYTE * size)
        try:
            answer: Any = function(storage, uri, size, *more)
            if isinstance(answer, Iterator):
                for item in answer:
                    with storage.turn:
                        connection.send_bytes(pickle.dumps((_ITEM, item)))
                        inbox.get()
                answer = None
        except BridgeError as error:
            answer = error
        except BaseException as error:  # Rust's panics are no Exception
            first = str(error).partition("\n")[0]
            what = f"{uri}: cannot be read: {type(error).__name__}: {first}"
            answer = FileUnreadable(what, _AGAIN)
        with storage.turn:
            storage.ended = True
            connection.send_bytes(pickle.dumps((_END, answer)))


def _listen(connection: Connection, inbox: SimpleQueue[bytes]) -> None:
    """Queues what the parent sends, and ends this process when the parent is gone."""
    try:
        while True:
            inbox.put(connection.recv_bytes())
    finally:
        os._exit(0)


def _limit(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _bound(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + seconds)


def _bound(kind: int, limit: int) -> None:
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(kind, (limit, most))


def _data_bytes() -> int:
    """Bytes of memory that the process may write to; 0 where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmData:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return 0


class _Parent:
    """The parent's storage, for one file.

    Attributes:
        turn: held from a message to its answer, as a library may read in threads of its own.
        ended: the answer is made; a thread that still reads is refused.
    """

    def __init__(
        self, connection: Connection, inbox: SimpleQueue[bytes], size: int, whole: bytes | None
    ) -> None:
        self._connection, self._inbox, self._size, self._whole = connection, inbox, size, whole
        self.turn, self.ended = threading.Lock(), False

    def read(self, uri: str) -> bytes:
        if self._whole is None:
            (self._whole,) = self.read_ranges(uri, [(0, self._size)])
        return self._whole

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        with self.turn:
            if self.ended:
                raise OSError(f"{uri} is read after its reader has ended")
            self._connection.send_bytes(pickle.dumps((_WANTED, list(ranges))))
            return [self._inbox.get() for _ in ranges]
