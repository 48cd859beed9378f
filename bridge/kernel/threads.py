"""The thread pools of this program: each has a bound, and a name that a thread dump shows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor


class Threads(ThreadPoolExecutor):
    """Threads for one purpose, which start when they are needed.

    As a context manager it waits for all calls. One that lives as long as its owner is closed by
    it: calls that run end by themselves, and none begins.

    Args:
        most: threads; less than one counts as one.
        purpose: a word that the threads' names have.
    """

    def __init__(self, most: int, purpose: str) -> None:
        super().__init__(max(1, most), f"skipbridge-{purpose}")

    def close(self) -> None:
        """Ends without waiting."""
        self.shutdown(wait=False, cancel_futures=True)
