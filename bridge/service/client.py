"""A Python client of the planner service, for the command line: is it there, and does it fit?"""

from __future__ import annotations

from typing import Any, Self

from thrift.protocol import TBinaryProtocol
from thrift.Thrift import TException
from thrift.transport import TSocket, TTransport

from bridge.kernel.config import parse_address
from bridge.kernel.errors import PlannerUnavailable, ProtocolMismatch
from bridge.service._gen import Planner as PlannerService
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL, error_of, mismatch_remedy


class PlannerClient:
    """One connection; not shared between threads.

    Errors of every call: PlannerUnavailable, and every error that the planner returns.
    """

    def __init__(self, endpoint: str = "127.0.0.1:9527", timeout: float = 30.0) -> None:
        self.endpoint = endpoint
        self._socket = TSocket.TSocket(*parse_address(endpoint))
        self._socket.setTimeout(timeout * 1000)
        self._transport = TTransport.TFramedTransport(self._socket)
        protocol = TBinaryProtocol.TBinaryProtocolAccelerated(self._transport)
        self._client = PlannerService.Client(protocol)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def health(self) -> ttypes.Health:
        """Errors: ProtocolMismatch."""
        health = self.call("health")
        if health.protocol != PROTOCOL:
            raise ProtocolMismatch(
                f"the planner {health.version} at {self.endpoint} speaks protocol "
                f"{health.protocol}, this client speaks {PROTOCOL}",
                mismatch_remedy(PROTOCOL, health.protocol),
            )
        return health

    def call(self, method: str, *args: object) -> Any:
        try:
            if not self._transport.isOpen():
                self._transport.open()
            return getattr(self._client, method)(*args)
        except ttypes.BridgeFailure as e:
            raise error_of(e) from e
        except (TException, OSError, EOFError) as e:
            self._transport.close()
            # Thrift's own message names only the address, which ours names too.
            cause = getattr(e, "inner", None) or e
            raise PlannerUnavailable(
                f"no answer from the planner at {self.endpoint}: "
                f"{getattr(cause, 'strerror', None) or cause}",
                "start it with `skipbridge serve`",
            ) from e
