"""The HTTP door: Iceberg's REST protocol with scan planning on the server, health and metrics.

Requests are authenticated by a bearer token, and must name a configured host: a page in a browser
cannot reach the door by another name (DNS rebinding). Planning runs in the service's threads, in
order of arrival; beyond a limit the answer is 429, which clients repeat.
"""

from __future__ import annotations

import asyncio
import gzip
import hmac
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bridge.iceberg_rest.clients import client_of
from bridge.iceberg_rest.plans import Plans
from bridge.iceberg_rest.tables import Tables
from bridge.kernel import telemetry
from bridge.kernel.errors import (
    BridgeError,
    Category,
    InvalidRequest,
    LimitExceeded,
    PlanLost,
    SchemaNotFound,
    TableNotFound,
    UnsupportedTable,
)
from bridge.table.model import TableName

log = logging.getLogger(__name__)
_SEPARATOR = "\x1f"
_NAMESPACE = "/v1/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_PREFIXED = "/v1/{prefix}/namespaces"
_CONFIG = {
    "defaults": {},
    "overrides": {"scan-planning-mode": "server"},
    "endpoints": [  # the prefix stays as it is, though none is used
        f"GET {_PREFIXED}",
        *(f"{m} {_PREFIXED}/{{namespace}}" for m in ("GET", "HEAD")),
        f"GET {_PREFIXED}/{{namespace}}/tables",
        *(f"{m} {_PREFIXED}/{{namespace}}/tables/{{table}}" for m in ("GET", "HEAD")),
        f"POST {_PREFIXED}/{{namespace}}/tables/{{table}}/plan",
        f"POST {_PREFIXED}/{{namespace}}/tables/{{table}}/tasks",
    ],
}
_COMPRESSED_FROM = 1 << 12
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """What a door accepts.

    Attributes:
        hosts: names in the Host header, in lower case and without port.
        token: that every request must bear, save those for health; empty: none is asked for.
        body: most bytes of a request.
        waiting: requests at work; further ones are told to come again.
        seconds: in which a request must be answered.
        ready: seconds in which a thread of the planner is free, else it is not ready.
    """

    hosts: frozenset[str]
    token: str = ""
    body: int = 16 << 20
    waiting: int = 64
    seconds: float = 300.0
    ready: float = 5.0


class Door:
    """Answers requests; ``app`` is the ASGI application.

    Args:
        registry: of the planner's metrics.
    """

    def __init__(
        self,
        tables: Tables,
        plans: Plans,
        pool: Executor,
        limits: DoorLimits,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._tables, self._plans, self._pool, self._limits = tables, plans, pool, limits
        self._registry = registry
        self._under_way = 0
        self._probe: asyncio.Future[Any] | None = None
        self.app = Starlette(
            routes=[
                Route("/healthz", self._alive),
                Route("/readyz", self._ready),
                Route("/metrics", self._guarded(self._metrics)),
                Route("/v1/config", self._guarded(self._config)),
                Route("/v1/namespaces", self._guarded(self._namespaces)),
                Route(_NAMESPACE, self._guarded(self._namespace)),
                Route(f"{_NAMESPACE}/tables", self._guarded(self._list)),
                Route(_TABLE, self._guarded(self._table)),
                Route(f"{_TABLE}/plan", self._guarded(self._plan), methods=["POST"]),
                Route(f"{_TABLE}/tasks", self._guarded(self._tasks), methods=["POST"]),
            ],
            exception_handlers={HTTPException: _refused},
        )
        self.app.router.redirect_slashes = False  # to the Host that the client names

    async def _alive(self, request: Request) -> Response:
        self._require_host(request)
        return Response(b"ok\n", media_type="text/plain")

    async def _ready(self, request: Request) -> Response:
        """Whether a plan could begin. That a metastore or a store is away is told by metrics."""
        self._require_host(request)
        if self._probe is None or self._probe.done():  # at most one waits
            with suppress(RuntimeError):  # the threads have ended
                self._probe = asyncio.get_running_loop().run_in_executor(self._pool, _nothing)
        if self._probe is not None and not self._probe.done():
            await asyncio.wait([self._probe], timeout=self._limits.ready)
            if self._probe.done() and not self._probe.cancelled():
                return Response(b"ok\n", media_type="text/plain")
        text = f"no thread of the planner has been free for {self._limits.ready:g} s\n"
        return Response(text, 503, media_type="text/plain")

    async def _metrics(self, request: Request) -> Response:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        body = await asyncio.to_thread(encode, self._registry)
        return Response(body, headers={"content-type": kind})

    def _guarded(self, handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                self._require_host(request)
                self._require_token(request)
                async with asyncio.timeout(self._limits.seconds):
                    return await _compressed(request, await handler(request))
            except TimeoutError:
                return _error(504, "TIMEOUT", f"no answer in {self._limits.seconds:g} s")
            except _Busy as error:
                return _error(429, "BUSY", str(error), {"Retry-After": "1"})
            except BridgeError as error:
                return _failure(error)
            except HTTPException as error:
                return await _refused(request, error)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            except Exception as error:
                log.exception("%s %s failed", request.method, request.url.path)
                telemetry.ERRORS.labels(BridgeError.code).inc()
                text = f"{type(error).__name__}: {error}; see the planner's log"
                return _error(500, BridgeError.code, text)

        return answer

    def _require_host(self, request: Request) -> None:
        host = request.headers.get("host", "").rpartition("]")
        name = f"{host[0]}{host[1]}" or host[2].partition(":")[0]
        if name.lower() not in self._limits.hosts:
            raise HTTPException(
                421, f"the Host header names {name[:200]!r}: add it to service.http_hosts"
            )

    def _require_token(self, request: Request) -> None:
        wanted = self._limits.token
        if not wanted:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if given == "None":  # what PyIceberg sends without a token
            given = ""
        right = hmac.compare_digest(given.strip().encode(), wanted.encode())
        if scheme.lower() != "bearer" or not right:
            raise HTTPException(401, "the bearer token is missing or wrong: set the option token")

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls in a thread. A request that is still being read takes no place."""
        if self._under_way >= self._limits.waiting:
            raise _Busy(f"{self._under_way} requests are in progress")
        call = asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)
        self._under_way += 1
        call.add_done_callback(self._ended)
        return await asyncio.shield(call)

    def _ended(self, call: asyncio.Future[Any]) -> None:
        """A call has ended, which may have outlived its request."""
        self._under_way -= 1
        if not call.cancelled():
            call.exception()  # nobody else may ask

    async def _body(self, request: Request) -> dict[str, Any]:
        most = self._limits.body
        parts = bytearray()
        told = request.headers.get("content-length", "")
        if told.isdecimal() and int(told) > most:  # nothing of it is read
            raise _too_large(most)
        async for chunk in request.stream():
            parts += chunk
            if len(parts) > most:
                raise _too_large(most)
        try:
            found = orjson.loads(bytes(parts))
        except ValueError as error:
            raise InvalidRequest(
                f"the body is no JSON: {error}", "send JSON of at most 1,000 levels"
            ) from error
        if not isinstance(found, dict):
            raise InvalidRequest("the body is no JSON object", "send an object")
        return found

    async def _config(self, request: Request) -> Response:
        return _json(_CONFIG)

    async def _namespaces(self, request: Request) -> Response:
        if request.query_params.get("parent"):
            await self._schema(request.query_params["parent"])
            return _json({"namespaces": []})
        found = await self._call(self._tables.planner.catalog.schemas)
        return _json({"namespaces": [[name] for name in found]})

    async def _namespace(self, request: Request) -> Response:
        name = await self._schema(request.path_params["namespace"])
        if request.method == "HEAD":
            return Response(status_code=204)
        return _json({"namespace": [name], "properties": {}})

    async def _schema(self, text: str) -> str:
        name = text.lower()
        if _SEPARATOR in text or name not in await self._call(self._tables.planner.catalog.schemas):
            raise SchemaNotFound(f"there is no schema {text!r}", "check the name")
        return name

    async def _list(self, request: Request) -> Response:
        schema = await self._schema(request.path_params["namespace"])
        catalog = self._tables.planner.catalog
        views = set(await self._call(catalog.views, schema))
        names = [n for n in await self._call(catalog.tables, schema) if n not in views]
        return _json({"identifiers": [{"namespace": [schema], "name": name} for name in names]})

    def _name(self, request: Request) -> TableName:
        schema, table = request.path_params["namespace"], request.path_params["table"]
        return TableName(schema.lower(), table.lower())

    async def _table(self, request: Request) -> Response:
        name = self._name(request)
        if request.method == "HEAD":
            await self._call(self._tables.exists, name)
            return Response(status_code=204)
        found = await self._call(self._tables.load, name, client_of(request.headers))
        body = orjson.dumps(found)
        tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(body, media_type="application/json", headers={"ETag": tag})

    async def _plan(self, request: Request) -> Response:
        body = await self._body(request)
        client = client_of(request.headers)
        found = await self._call(self._plans.plan, self._name(request), client, body)
        return Response(found, media_type="application/json")

    async def _tasks(self, request: Request) -> Response:
        token = (await self._body(request)).get("plan-task")
        if not isinstance(token, str):
            raise InvalidRequest("the request names no plan-task", "send one of the plan's")
        client = client_of(request.headers)
        found = await self._call(self._plans.tasks, self._name(request), client, token)
        return Response(found, media_type="application/json")


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"the request has more than {most} bytes, service.http_max_body")


def _nothing() -> None:
    """What a thread does that is asked whether it is free."""


class _Busy(Exception):
    """Too many requests are in progress."""


def _json(found: Any) -> Response:
    return Response(orjson.dumps(found), media_type="application/json")


async def _compressed(request: Request, response: Response) -> Response:
    body = bytes(response.body)
    if len(body) < _COMPRESSED_FROM or "gzip" not in request.headers.get("accept-encoding", ""):
        return response
    headers = dict(response.headers) | {"content-encoding": "gzip", "vary": "accept-encoding"}
    del headers["content-length"]
    packed = await asyncio.to_thread(gzip.compress, body, 1)
    return Response(packed, response.status_code, headers)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = {"WWW-Authenticate": "Bearer"} if error.status_code == 401 else {}
    kind = {401: "NotAuthorizedException"}.get(error.status_code, "BadRequestException")
    return _error(error.status_code, kind, str(error.detail), headers)


_STATUS: tuple[tuple[type[BridgeError], int, str], ...] = (
    (SchemaNotFound, 404, "NoSuchNamespaceException"),
    (TableNotFound, 404, "NoSuchTableException"),
    (PlanLost, 404, "NoSuchPlanTaskException"),
    (UnsupportedTable, 400, "BadRequestException"),
    (LimitExceeded, 400, "BadRequestException"),
)


def _failure(error: BridgeError) -> Response:
    telemetry.ERRORS.labels(error.code).inc()
    status, kind = 500, "ServiceFailureException"
    if error.category is Category.USER_ERROR:
        status, kind = 400, "BadRequestException"
    elif error.retryable:  # clients ask again after this status
        status, kind = 503, "ServiceUnavailableException"
    for cls, code, name in _STATUS:
        if isinstance(error, cls):
            status, kind = code, name
    text = f"{error.code}: {error.message}"
    return _error(status, kind, f"{text} -> {error.hint}" if error.hint else text)


def _error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Response:
    body = orjson.dumps({"error": {"message": message, "type": kind, "code": status}})
    return Response(body, status, headers, media_type="application/json")
