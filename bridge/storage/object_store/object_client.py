"""The clients of object stores, as options and the environment say."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from bridge.kernel.errors import StorageFailure
from bridge.storage.native import CONNECTIONS, limit, wait_for
from bridge.storage.retry import DEADLINE
from bridge.storage.uri import Location, without_user

Store = S3Store | GCSStore | AzureStore
_Like = TypeVar("_Like", bound=Store)
_opened: WeakValueDictionary[tuple[object, ...], Store] = WeakValueDictionary()
"""One client for a bucket, as long as anybody uses it: each has connections of its own."""
_lock = threading.Lock()
os.register_at_fork(after_in_child=_opened.clear)
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
_PREFIXES = {"azure_": "abfss", "google_": "gs"}
"""How options begin that are for one kind of store; the others are for S3."""
_ENDPOINTS = {
    "s3": (
        ("endpoint", "endpoint_url"),
        ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
        "AWS_ALLOW_HTTP",
    ),
    "gs": (("google_base_url",), ("GOOGLE_BASE_URL",), "GOOGLE_ALLOW_HTTP"),
    "abfss": (
        ("azure_storage_endpoint", "azure_endpoint"),
        ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
        "AZURE_ALLOW_HTTP",
    ),
}
"""By scheme: the options that name an endpoint, the variables, and the one that allows HTTP."""
SIGNED_FOR = timedelta(minutes=5)
_GOOGLE = "https://storage.googleapis.com"
_UNSIGNED = "AWS_SKIP_SIGNATURE", "GOOGLE_SKIP_SIGNATURE", "AZURE_SKIP_SIGNATURE"
_AZURE_CLOUD = "core.windows.net"
"""The host of accounts in Azure's public cloud; others are in a location's own host."""


def open_store(place: Location, options: Mapping[str, str]) -> Store:
    """The store of a bucket.

    Args:
        options: ``allow_http``, ``timeout`` (of one answer, in seconds) and ``retries`` of every
            store, and obstore's configuration keys: those that begin with ``azure_`` are for
            Azure, those with ``google_`` for GCS, and all others, such as ``endpoint``,
            ``region`` and ``access_key_id``, for S3. Missing options come from the environment.
            ``connections`` bounds the requests of this process.
    """
    environment = ((k, v) for k, v in os.environ.items() if k.startswith(_VARIABLES))
    known = place.scheme, place.authority, *sorted(options.items()), None, *sorted(environment)
    with _lock:
        store = _opened.get(known)
        if store is None:
            store = _opened[known] = _open(place, options)
        return store


def _open(place: Location, options: Mapping[str, str]) -> Store:
    given = dict(options)
    limit(int(given.pop("connections", CONNECTIONS)))
    client: dict[str, Any] = {"timeout": timedelta(seconds=float(given.pop("timeout", "60")))}
    if given.pop("allow_http", "false").lower() == "true":
        client["allow_http"] = True
    retries = int(given.pop("retries", "5"))
    config: dict[str, Any] = {k: v for k, v in given.items() if _scheme_of(k) == place.scheme}
    endpoint = checked_endpoint(config, client, place.scheme)
    if _http_by_environment(place.scheme):
        client["allow_http"] = True  # obstore heeds the variable only where it gets no options
    retry: Any = {"max_retries": retries, "retry_timeout": timedelta(seconds=DEADLINE)}
    arguments: dict[str, Any] = {"client_options": client, "retry_config": retry}
    try:
        if place.scheme == "s3":
            return S3Store(place.authority, **arguments, **config)
        if place.scheme == "gs":
            return GCSStore(place.authority, **arguments, **config)
        container, _, host = place.authority.partition("@")
        before, _, suffix = host.partition(".dfs.")
        if not endpoint and suffix not in ("", _AZURE_CLOUD):
            config["azure_storage_endpoint"] = f"https://{before}.blob.{suffix}"
        account = host.partition(".")[0]
        return AzureStore(container, account_name=account, **arguments, **config)
    except (BaseError, TypeError) as error:
        raise StorageFailure(
            f"cannot open {place.scheme}://{place.authority}: {error}",
            "check the storage.* options",
        ) from error


def _scheme_of(option: str) -> str:
    return next((scheme for start, scheme in _PREFIXES.items() if option.startswith(start)), "s3")


def _http_by_environment(scheme: str) -> bool:
    return os.environ.get(_ENDPOINTS[scheme][2], "").lower() == "true"


def checked_endpoint(
    config: Mapping[str, Any], client: Mapping[str, Any], scheme: str = "s3"
) -> str:
    """The endpoint by the options or the environment; empty for that of the cloud.

    Errors:
        StorageFailure: it has no scheme, or is plain HTTP, which is not allowed.
    """
    options, variables, _ = _ENDPOINTS[scheme]
    name = "storage.endpoint" if scheme == "s3" else options[0]
    named = [(name, next(filter(None, (config.get(option, "") for option in options)), ""))]
    named += [(name, os.environ.get(name, "")) for name in variables]
    name, endpoint = next(((n, e) for n, e in named if e), ("", ""))
    if not endpoint:
        return ""
    if not endpoint.lower().startswith(("http://", "https://")):
        raise StorageFailure(
            f"{name} is {without_user('//' + endpoint)[2:]!r}, not an address with a scheme",
            f"write https://{without_user('//' + endpoint)[2:]}",
        )
    allowed = client.get("allow_http") or _http_by_environment(scheme)
    if endpoint.lower().startswith("http://") and not allowed:
        raise StorageFailure(
            f"{name} is {without_user(endpoint)}, and plain HTTP is not allowed: "
            "it carries keys and data unencrypted",
            "write https://, or set storage.allow_http = true if the network is yours",
        )
    return str(endpoint)


def store_at(store: _Like, address: str) -> _Like:
    """A client like another one, which adds a slash and a key to an address.

    That of GCS adds the bucket's name before the key; that of Azure adds nothing to an empty key.
    """
    if isinstance(store, GCSStore):
        return _like(store, base_url=address)
    if isinstance(store, AzureStore):
        return _like(store, container_name=".", endpoint=address)  # no part of a path
    return _like(store, virtual_hosted_style_request=True, endpoint=address)


def bucket_address(store: Store) -> str:
    """The address of a bucket, without a slash at its end. Errors: BaseError."""
    if isinstance(store, AzureStore):
        named = store.config.get("endpoint") or checked_endpoint({}, {"allow_http": True}, "abfss")
        endpoint = named or f"https://{store.config['account_name']}.blob.{_AZURE_CLOUD}"
        return f"{endpoint.rstrip('/')}/{store.config['container_name']}"
    if isinstance(store, S3Store):
        store = _like(store, skip_signature=False, access_key_id="no", secret_access_key="no")
    elif is_unsigned(store):
        base = store.config.get("base_url") or os.environ.get("GOOGLE_BASE_URL", _GOOGLE)
        return f"{base.rstrip('/')}/{store.config['bucket']}"
    return sign(store).partition("?")[0].rstrip("/")


def is_unsigned(store: Store) -> bool:
    """Whether a client signs no requests."""
    variable = _UNSIGNED[(S3Store, GCSStore, AzureStore).index(type(store))]
    said = store.config.get("skip_signature", os.environ.get(variable))
    return str(said).lower() == "true"


def _like(store: _Like, **changed: Any) -> _Like:
    config: Any = dict(store.config) | changed
    options: Any = {"client_options": store.client_options, "retry_config": store.retry_config}
    return type(store)(**options, **config)


def sign(store: S3Store | GCSStore) -> str:
    """The address of the empty key, signed for some minutes.

    GCS signs itself for a client without a private key, if that may ask for it.

    Errors: BaseError.
    """
    return wait_for(lambda: obstore.sign_async(store, "GET", "", SIGNED_FOR))
