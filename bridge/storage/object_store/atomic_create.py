"""Creation of objects by one of several writers, with an object store's conditional writes.

Some S3-compatible stores ignore the condition, and a second writer replaces the first one's object.
The first creation therefore tests with a few concurrent requests that only one of them can create
an object.

A refusal may be wrong. Where the answer to a request is lost, obstore repeats the request, and the
store refuses what it has done itself. S3 refuses a request also while another one for the same name
is under way, which may fail. So each writer marks its object, and looks whose it is if it is
refused. It looks also if the store says that it has created it: an answer may be another one's.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Mapping
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    NotSupportedError,
    PreconditionError,
)
from obstore.store import AzureStore, GCSStore, S3Store

from bridge.kernel.errors import StorageFailure
from bridge.kernel.retry import Backoff
from bridge.kernel.threads import Threads
from bridge.storage.native import wait_for
from bridge.storage.reading.requests import count_requests
from bridge.storage.retry import repeat
from bridge.storage.store_errors import STORE_ERRORS, failure

_RIVALS = 4
"""Concurrent requests that test whether the store lets only one of them create a file."""
_PROOFS = 3
"""How often the test is repeated if no request is reported as successful."""
_ATTEMPTS = 4
"""How often a name is asked for that the store refuses though nothing is there."""
_PAUSE = 0.1
_MARK = "writer"
"""The metadata that tells who has written an object. Azure allows only letters and digits."""


class AtomicCreate:
    """Creates objects in one bucket.

    Args:
        base: the bucket's URI, with a slash at its end.
    """

    def __init__(self, store: S3Store | GCSStore | AzureStore, base: str) -> None:
        self._store, self._base = store, base
        self._proving = threading.Lock()
        self.proven = False

    def create(self, key: str, content: bytes) -> bool:
        """Creates an object; False if there is one of this name that somebody else has written.

        Errors:
            StorageFailure: also if the store lets more than one writer create an object.
        """
        self._prove(key)
        mark = uuid.uuid4().hex
        for _ in Backoff(_PAUSE, attempts=_ATTEMPTS):
            refusal = self._put(key, content, mark)
            writer = self._writer(key)
            if writer is not None:
                return refusal is None or writer == mark
        if refusal is None:
            raise StorageFailure(
                f"the store says that it has written {self._base}{key}, and it is not there",
                "check the store",
            )
        if "ConditionalRequestConflict" in str(refusal):  # others ask for the name all the time
            raise failure(refusal, self._base + key) from refusal
        raise StorageFailure(
            f"{self._base}{key} can be neither created nor read: the store says that it is there, "
            "and that it is not",
            "if the bucket has versioning, a delete marker may lie at this key: delete the marker, "
            "or suspend versioning of the bucket",
        ) from refusal

    def _put(self, key: str, content: bytes, mark: str) -> BaseError | None:
        """Why the store refuses the name; None if it is ours."""
        try:
            count_requests("write")
            attributes: Any = {_MARK: mark}
            repeat(
                lambda: wait_for(
                    lambda: obstore.put_async(
                        self._store, key, content, mode="create", attributes=attributes
                    ),
                    late=False,
                )
            )
        except (AlreadyExistsError, PreconditionError) as refusal:
            return refusal
        except NotSupportedError as error:
            raise StorageFailure(
                f"{self._base} has no conditional writes", "keep the index on another store"
            ) from error
        except STORE_ERRORS as error:
            raise failure(error, self._base + key) from error
        return None

    def _writer(self, key: str) -> str | None:
        """The mark of an object, empty if it has none; None if there is no object."""
        try:
            count_requests("look")
            found = repeat(lambda: wait_for(lambda: self._attributes(key), late=False))
        except (NotFoundError, FileNotFoundError):
            return None
        except STORE_ERRORS as error:
            raise failure(error, self._base + key) from error
        return str(found.get(_MARK, ""))

    async def _attributes(self, key: str) -> Mapping[Any, str]:
        return (await obstore.get_async(self._store, key, options={"head": True})).attributes

    def _prove(self, key: str) -> None:
        """Errors: StorageFailure: more or fewer than one of several writers created a file."""
        with self._proving:
            if self.proven:
                return
            for _ in range(_PROOFS):
                probe = f"{key.rpartition('/')[0]}/.probe.{uuid.uuid4().hex}.tmp".lstrip("/")
                created = self._creators(probe)
                if created:
                    break
                # The winner's response was lost, so its request was retried and refused.
            if not created:
                raise StorageFailure(
                    f"{self._base} told each of {_RIVALS + 2} writers that another one had created "
                    f"{self._base}{probe}",
                    "check the network, and try again",
                )
            if created > 1:
                raise StorageFailure(
                    f"{self._base} let {created} writers create {self._base}{probe}: it does not "
                    "heed If-None-Match, and of two builders at once one would lose its generation",
                    "keep the index on a store with conditional writes (setting index.root)",
                )
            self.proven = True

    def _creators(self, probe: str) -> int:
        """How many of several writers created ``probe``, which is then deleted."""

        def won(content: bytes) -> bool:
            return self._put(probe, content, uuid.uuid4().hex) is None

        try:
            with Threads(_RIVALS, "rival") as pool:
                created = sum(pool.map(won, [b"%d" % n for n in range(_RIVALS)]))
            return created + won(b"late") + won(b"later")
        finally:
            # otherwise an index cleanup deletes it
            with contextlib.suppress(BaseError, FileNotFoundError):
                count_requests("delete")
                wait_for(lambda: obstore.delete_async(self._store, probe), late=False)
