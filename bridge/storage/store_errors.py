"""Errors of object stores as sentences with a remedy, in the store's own words."""

from __future__ import annotations

import html
import re

from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError

from bridge.kernel.errors import FileUnreadable, InvalidUri, StorageFailure
from bridge.storage.local_disk.local_errors import refuse_exhausted
from bridge.storage.object_store.odd_keys import odd_key_in
from bridge.storage.uri import parse

STORE_ERRORS = (BaseError, FileNotFoundError)
"""All that the client raises: also Python's own error where something is missing."""
NO_BUCKET = "there is no"
"""How the message begins where a bucket is missing."""
_METADATA = ("169.254.169.254", "169.254.170.", "metadata.google.internal")
"""Metadata endpoints of cloud machines, the last resort of clients without credentials."""
_CREDENTIALS = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_SKIP_SIGNATURE=true)",
    "gs": "set GOOGLE_SERVICE_ACCOUNT to the key file of a service account",
    "abfss": "set AZURE_STORAGE_ACCOUNT_KEY, or client id, secret and tenant",
}
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_REGION = frozenset({"AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect"})
_REFUSED = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "XAdminUserNotFound", "ExpiredToken",
     "InvalidToken", "AuthenticationFailed"}
)  # fmt: skip
_DENIED = frozenset(
    {"AccessDenied", "AllAccessDisabled", "AuthorizationPermissionMismatch", "AuthorizationFailure",
     "InsufficientAccountPermissions", "NoAuthenticationInformation", "PublicAccessNotPermitted"}
)  # fmt: skip
_OTHER = {
    "RequestTimeTooSkewed": (
        "this machine's clock is not the store's", "set this machine's clock (NTP)"
    ),
    "InvalidObjectState": (
        "it lies in an archive, and cannot be read", "restore it from the archive (S3 Glacier)"
    ),
    "BlobArchived": ("it lies in an archive, and cannot be read", "restore it from the archive"),
    "QuotaExceeded": ("a quota is used up", "free space, or raise the bucket's quota"),
    "XMinioAdminBucketQuotaExceeded": (
        "a quota is used up", "free space, or raise the bucket's quota"
    ),
    "ServiceQuotaExceeded": ("a quota is used up", "free space, or raise the quota"),
}  # fmt: skip
"""What codes mean that stores answer with status 403, and that no policy mends."""
_UNSIGNED = "Server failed to authenticate the request"
"""What Azure says of a wrong key, under several codes."""
ENDPOINT = {
    "s3": "storage.endpoint and storage.region",
    "gs": "GOOGLE_BASE_URL",
    "abfss": "the account's name and AZURE_STORAGE_ENDPOINT",
}
_POLICY = "check the credentials and their policy"
_LATE = "kind: Timeout"
"""In what the client tells of an answer that did not come, or did not go on."""
_TIMES = "check the store and the network; storage.timeout is the longest wait for one answer"


def failure(error: Exception, uri: str) -> StorageFailure:
    """The error for a request that failed. Never for a file that does not exist.

    Errors:
        LimitExceeded instead of it; InvalidUri: a listed object has a name that the client refuses.
    """
    refuse_exhausted(error)
    if odd := odd_key_in(error):
        raise InvalidUri(
            f"{uri} holds an object that cannot be listed: {odd}",
            "rename or delete that object, which the storage library here cannot name: a name has "
            "no empty part (//), no part . or .., and no control character",
        ) from error
    return StorageFailure(*(_known(error, uri, "") or _words(error, uri)))


def unreadable(error: Exception, uri: str) -> FileUnreadable:
    """The error for a file that could not be read. Errors: LimitExceeded instead of it."""
    refuse_exhausted(error)
    known = _known(error, uri, "to read ")
    if known is None and isinstance(error, (NotFoundError, FileNotFoundError)):
        known = f"{uri} does not exist", "refresh the index"
    if known is None and _LATE in str(error):
        known = f"{uri} cannot be read: {_late(error)}", _TIMES
    if known is None:
        known = f"{uri} cannot be read: {_said(error)}", "check the file and the network"
    return FileUnreadable(*known)


def _known(error: Exception, uri: str, what: str) -> tuple[str, str] | None:
    """Message and remedy for mistakes in settings and policies; None for other failures."""
    text, (code, said) = str(error), _code(error)
    place = parse(uri)
    if any(address in text for address in _METADATA):
        return (
            f"no credentials for {uri}: the environment holds none, "
            "and this machine has no role in a cloud that would give some",
            _CREDENTIALS[place.scheme],
        )
    if code in _NO_BUCKET or (not what and isinstance(error, (NotFoundError, FileNotFoundError))):
        kind = "container" if place.scheme == "abfss" else "bucket"
        return (
            f"{NO_BUCKET} {kind} {place.authority}: {said or _first(text)}",
            f"check the {kind}'s name, {ENDPOINT[place.scheme]}",
        )
    if code in _REGION or "incorrectly configured region" in text:
        region = re.search(r"<Region>([^<]+)</Region>", text)
        return (
            f"{place.authority} is in another region: {said or _first(text)}",
            f"set storage.region to {region[1] if region else 'the region of the bucket'}",
        )
    if code in _REFUSED or said.startswith(_UNSIGNED):
        return f"the store refuses the credentials for {uri}: {said}", _CREDENTIALS[place.scheme]
    if code in _OTHER:
        why, remedy = _OTHER[code]
        return f"{uri}: {why}: {said or code}", remedy
    if code in _DENIED or isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
        what = what or ("to list " if "list request" in text else "for ")
        return f"no permission {what}{uri}{': ' if said else ''}{said}", _POLICY
    if "status code: 403" in text:
        return f"no permission to list {uri}: {_said(error)}", _POLICY
    return None


def _words(error: Exception, uri: str) -> tuple[str, str]:
    if _LATE in str(error):
        return f"{uri}: {_late(error)}", _TIMES
    if "error sending request" in str(error):
        return (
            f"{uri}: the store cannot be reached: {_first(str(error))}",
            f"check {ENDPOINT[parse(uri).scheme]}, and the network",
        )
    return f"{uri}: {_said(error)}", f"check {ENDPOINT[parse(uri).scheme]}, bucket and network"


def _late(error: Exception) -> str:
    return f"the store gave no whole answer in time: {_first(str(error))}"


def _said(error: Exception) -> str:
    code, said = _code(error)
    return f"{code}: {said}" if code else _first(str(error))


def _code(error: Exception) -> tuple[str, str]:
    """The code and the message in the store's answer; empty if it has none."""
    text = str(error)
    code = re.search(r"<Code>([^<]+)</Code>", text)
    said = re.search(r"<Message>([^<]*)</Message>", text)
    return code[1] if code else "", html.unescape(said[1]).strip() if said else ""


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]
