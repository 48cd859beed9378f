"""What only object stores have: conditions that some ignore, credentials, endpoints."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

from bridge.kernel.errors import FileUnreadable, StorageFailure
from bridge.storage.routed import open_storage
from tests.storage.conftest import BUCKET, Place
from tests.storage.test_index_on_storage import build, store, write

pytestmark = pytest.mark.full


@contextmanager
def _between(
    s3_options: dict[str, str],
    *,
    conditions: bool = True,
    answers_lost: int = 0,
    lost_of: str = "",
    refused: dict[str, list[tuple[int, bytes]]] | None = None,
) -> Iterator[dict[str, str]]:
    """The S3 endpoint behind one that treats some requests in its own way.

    Args:
        conditions: False: drops If-None-Match, as some stores do.
        answers_lost: the first answers to those who create a name that ends with ``lost_of``.
        refused: what it says, in turn, to those who write a key with such an end, and not do it.
    """
    behind = urlsplit(s3_options["endpoint"])
    assert behind.hostname
    lost: list[str] = []
    refusals = refused or {}

    class Between(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _pass_on(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            kept = dict(self.headers.items())
            conditional = kept.pop("if-none-match", None)
            if conditional and conditions:
                kept["if-none-match"] = conditional
            told = refusals.get(self.path.rpartition("/")[2], []) if self.command == "PUT" else []
            if told:
                self._say(*told.pop(0))
                return
            connection = http.client.HTTPConnection(behind.hostname or "", behind.port)
            connection.request(self.command, self.path, content, kept)
            answer = connection.getresponse()
            body, status = answer.read(), answer.status
            creates = conditional and self.path.endswith(lost_of)
            if creates and status == 200 and len(lost) < answers_lost:
                lost.append(self.path)
                body, status = b"", 503
            self.send_response(status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _pass_on  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Between) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield {**s3_options, "endpoint": f"http://127.0.0.1:{server.server_port}"}
        server.shutdown()
    assert len(lost) == answers_lost


@pytest.fixture
def careless(s3_options: dict[str, str]) -> Iterator[dict[str, str]]:
    """A store that ignores conditions."""
    with _between(s3_options, conditions=False) as options:
        yield options


def test_30_a_store_that_ignores_conditions_takes_no_commit(careless: dict[str, str]) -> None:
    place = Place(open_storage(options=careless), f"s3://{BUCKET}/careless/t")
    write(place, "m=1/a", 1)
    for _ in range(2):
        with pytest.raises(StorageFailure, match="does not heed If-None-Match") as caught:
            build(place)
        assert "index.root" in caught.value.hint
    assert store(place).generations() == []
    names = place.storage.list_all(f"{place.root}/.skipbridge/generations").paths.to_pylist()
    assert names == []  # the probe is gone as well


def test_30_a_store_whose_answers_are_lost_is_not_refused(s3_options: dict[str, str]) -> None:
    with _between(s3_options, conditions=True, answers_lost=2) as options:
        storage = open_storage(options=options)
        root = f"s3://{BUCKET}/lossy"
        assert storage.put_if_absent(f"{root}/1", b"x")
        assert not storage.put_if_absent(f"{root}/1", b"y")
        assert storage.list_all(root).paths.to_pylist() == [f"{root}/1"]


def test_30_who_created_a_name_is_told_so_though_the_answer_was_lost(
    s3_options: dict[str, str],
) -> None:
    """The store refuses the request that is repeated: it has done it already."""
    with _between(s3_options, answers_lost=1, lost_of="/mine") as options:
        storage, uri = open_storage(options=options), f"s3://{BUCKET}/repeated/mine"
        assert storage.put_if_absent(uri, b"x")
        assert storage.read(uri) == b"x"
        for each in (storage, open_storage(options=options)):
            assert not each.put_if_absent(uri, b"x")


def test_30_a_name_that_is_refused_and_not_there_is_asked_for_again(
    s3_options: dict[str, str],
) -> None:
    """S3 says 409 while another request for the name is under way, which may fail."""
    body = b"<Error><Code>ConditionalRequestConflict</Code><Message>Again</Message></Error>"
    conflict = 409, body
    refused = {"free": [conflict] * 2, "never": [conflict] * 99}
    with _between(s3_options, refused=refused) as options:
        storage, root = open_storage(options=options), f"s3://{BUCKET}/contested"
        assert storage.put_if_absent(f"{root}/free", b"x")
        assert storage.read(f"{root}/free") == b"x"
        assert not refused["free"]
        with pytest.raises(StorageFailure, match="never: ConditionalRequestConflict: Again"):
            storage.put_if_absent(f"{root}/never", b"x")


def test_a_copy_that_fails_after_the_answer_began_is_an_error(s3_options: dict[str, str]) -> None:
    aborted = (200, b"<Error><Code>OperationAborted</Code><Message>Stopped</Message></Error>")
    with _between(s3_options, refused={"copied": [aborted]}) as options:
        storage, root = open_storage(options=options), f"s3://{BUCKET}/copies"
        storage.put(f"{root}/f", b"data")
        state = storage.stat(f"{root}/f")
        assert state is not None
        with pytest.raises(StorageFailure, match=r"says that it has copied .*no such file"):
            storage.copy(state, f"{root}/copied")
        assert storage.copy(state, f"{root}/copied")
        assert storage.read(f"{root}/copied") == b"data"


def test_a_store_is_probed_once(s3_options: dict[str, str]) -> None:
    storage = open_storage(options=s3_options)
    root = f"s3://{BUCKET}/probed"
    assert storage.put_if_absent(f"{root}/1", b"x")
    assert storage.list_all(root).paths.to_pylist() == [f"{root}/1"]
    assert not storage.put_if_absent(f"{root}/1", b"y")
    assert storage.store(root)._creation.proven  # type: ignore[attr-defined]


def test_plain_http_is_allowed_by_a_setting(s3_options: dict[str, str]) -> None:
    given = {k: v for k, v in s3_options.items() if k != "allow_http"}
    with pytest.raises(
        StorageFailure, match=r"storage\.endpoint is http://.*not allowed"
    ) as caught:
        open_storage(options=given).stat(f"s3://{BUCKET}/x")
    assert "storage.allow_http" in caught.value.hint


def test_plain_http_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StorageFailure, match="AWS_ENDPOINT_URL is http://127"):
        open_storage().stat(f"s3://{BUCKET}/x")


def test_plain_http_is_allowed_by_the_environment(
    s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, option in (
        ("AWS_ENDPOINT_URL", "endpoint"),
        ("AWS_REGION", "region"),
        ("AWS_ACCESS_KEY_ID", "access_key_id"),
        ("AWS_SECRET_ACCESS_KEY", "secret_access_key"),
        ("AWS_ALLOW_HTTP", "allow_http"),
    ):
        monkeypatch.setenv(name, s3_options[option])
    open_storage().put(f"s3://{BUCKET}/environment", b"x")
    assert open_storage(options={"timeout": "9"}).read(f"s3://{BUCKET}/environment") == b"x"


def test_an_endpoint_without_a_scheme() -> None:
    with pytest.raises(StorageFailure, match="'minio:9000'") as caught:
        open_storage(options={"endpoint": "minio:9000"}).stat(f"s3://{BUCKET}/x")
    assert "https://minio:9000" in caught.value.hint


def test_no_credentials(s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    given = {k: v for k, v in s3_options.items() if "access_key" not in k}
    storage = open_storage(options={**given, "retries": "0", "timeout": "2"})
    uri = f"s3://{BUCKET}/x"
    for ask in (storage.stat, storage.list_all, storage.delete, storage.list_directories):
        with pytest.raises(StorageFailure, match="no credentials") as caught:
            ask(uri)
        assert "AWS_ACCESS_KEY_ID" in caught.value.hint
    with pytest.raises(FileUnreadable, match="no credentials"):
        storage.read(uri)
