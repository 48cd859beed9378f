"""Pages of a container of Azure by requests of our own, told in the words of S3's listings.

The client signs addresses of blobs alone. So a page's address is signed by the account's key, or
holds the token of the options. What an identity gets, the client keeps to itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode

from obstore.exceptions import GenericError
from obstore.store import AzureStore

from bridge.storage.object_store.object_client import SIGNED_FOR, bucket_address, is_unsigned

_PAGE = 5_000
_VERSION = "2021-08-06"
"""Of Azure's interface, from which on a name says whether it is encoded."""
_KEYS = "account_key", "access_key", "master_key"
_TOKENS = "sas_key", "sas_token"


def listing_address(store: AzureStore, query: Mapping[str, str], prefix: str) -> str:
    """The address of a page, with whatever credentials the client has.

    Args:
        query: of a listing in S3.

    Errors: GenericError: only the client may ask.
    """
    access = _access(store)
    if access is None:
        raise GenericError("neither an account's key nor a token is given")
    asked = {
        "restype": "container",
        "comp": "list",
        "maxresults": str(_PAGE),
        "prefix": f"{prefix.rstrip('/')}/" if prefix else "",
        "delimiter": query.get("delimiter", ""),
        "marker": query.get("continuation-token", ""),
    }
    given = urlencode({name: text for name, text in asked.items() if text}, quote_via=quote)
    return f"{bucket_address(store)}?{given}{access and '&'}{access}"


def translate_to_s3(root: ElementTree.Element) -> ElementTree.Element:
    """A page of Azure as S3 tells one; else what is given. Errors: ValueError: a time is none."""
    blobs = root.find("Blobs")
    if root.tag != "EnumerationResults" or blobs is None:
        return root
    page, marker = ElementTree.Element("ListBucketResult"), root.findtext("NextMarker") or ""
    _add(page, IsTruncated="true" if marker else "false", NextContinuationToken=marker)
    for blob in blobs:
        name = blob.find("Name")
        key = "" if name is None else name.text or ""
        if name is not None and name.get("Encoded") == "true":
            key = unquote(key)
        if blob.tag == "BlobPrefix":
            _add(ElementTree.SubElement(page, "CommonPrefixes"), Prefix=key)
        elif blob.findtext("Properties/ResourceType") != "directory":
            _add(
                ElementTree.SubElement(page, "Contents"),
                Key=key,
                Size=blob.findtext("Properties/Content-Length") or "",
                LastModified=parsedate_to_datetime(
                    blob.findtext("Properties/Last-Modified") or ""
                ).isoformat(),
                ETag=blob.findtext("Properties/Etag") or "",
            )
    return page


def _add(element: ElementTree.Element, **texts: str) -> None:
    for name, text in texts.items():
        ElementTree.SubElement(element, name).text = text


def _access(store: AzureStore) -> str | None:
    """What gives an address the right to list; None if there is nothing."""
    if is_unsigned(store):
        return ""
    if key := _setting(store, _KEYS):
        return _signature(store, key)
    token = _setting(store, _TOKENS)
    return token.removeprefix("?") if token else None


def _setting(store: AzureStore, names: tuple[str, ...]) -> str:
    """As the client does, which heeds the environment after its options."""
    config: Any = store.config
    found = [config.get(name) or os.environ.get(f"AZURE_STORAGE_{name.upper()}") for name in names]
    return next(filter(None, found), "")


def _signature(store: AzureStore, key: str) -> str:
    """Permission to list the container for some minutes, signed by the account's key."""
    until = (datetime.now(UTC) + SIGNED_FOR).strftime("%Y-%m-%dT%H:%M:%SZ")
    place = f"/blob/{store.config['account_name']}/{store.config['container_name']}"
    signed = "\n".join(["l", "", until, place, "", "", "", _VERSION, "c", *[""] * 7])
    digest = hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()
    fields = {"sp": "l", "se": until, "sv": _VERSION, "sr": "c"}
    return urlencode({**fields, "sig": base64.b64encode(digest).decode()})
