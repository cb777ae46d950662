"""Messages contain no passwords of URLs."""

import pytest

from braid.client import Client
from braid.support.errors import BraidError
from braid.support.records.record_store import open_store

pytest.importorskip("psycopg", reason="the extra postgres is not installed")

URLS = (
    "postgresql://user:secret@127.0.0.1:9/none",
    "postgresql://127.0.0.1:9/none?user=u&password=secret",
    "postgresql://127.0.0.1:9/none?sslpassword=secret&sslmode=no",
    "postgresql://user:x@secret@127.0.0.1:9/none",
    "postgresql://user:secret@127.0.0.1:port/none",
    "postgresql://user:secret@[::1/none",
    "postgresql:/user:secret@127.0.0.1:9/none",
    "mysql://user:secret@127.0.0.1/none",
    "sqlite://user:secret@",
    "user:secret@127.0.0.1",
)


@pytest.mark.parametrize("url", URLS)
def test_messages_on_record_urls_have_no_password(url: str) -> None:
    with pytest.raises(BraidError) as caught:
        store = open_store(url)
        assert "secret" not in repr(store)
        store.read("cost")
    assert "secret" not in str(caught.value) and "secret" not in str(caught.value.hint)


@pytest.mark.parametrize(
    "url", ["http://user:secret@127.0.0.1:9", "http://user:secret@[::1", "ftp://u:secret@h"]
)
def test_messages_on_server_urls_have_no_password(url: str) -> None:
    with pytest.raises(BraidError) as caught:
        Client(url, "token").task("x")
    assert "secret" not in str(caught.value)
