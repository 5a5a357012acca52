"""The server: only this machine, only its own name, and data that outgrow a page."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

import onelayer
from onelayer.explorer import samples
from onelayer.explorer.serve import Server
from onelayer.model import Model
from tests.explorer.conftest import Open

STORED = 40


@pytest.fixture(scope="module")
def model() -> Model:
    X = np.random.default_rng(0).standard_normal((STORED, 2, 2))
    return onelayer.memorize(X, np.arange(2 * STORED).reshape(STORED, 2) % 3)


@pytest.fixture
def server(model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(samples, "MOST_NUMBERS", 10 * 4)  # ten sequences at a time
    with Server(model.explore()) as started:
        thread = Thread(target=started.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def ask(server: Server, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*server.server_address)  # type: ignore[arg-type]
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_it_listens_on_the_loopback_address_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/", "/model", "/samples?start=0"])
@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "127.0.0.1.example.org:{port}", ""])
def test_a_foreign_host_is_refused(server: Server, path: str, host: str) -> None:
    code, content = ask(server, path, host.format(port=server.server_port))
    assert code == 421
    assert b"machine that serves it" in content


def test_its_own_names_are_answered_and_other_pages_are_not_there(server: Server) -> None:
    assert all(ask(server, "/", host)[0] == 200 for host in server.hosts)
    assert ask(server, "/model")[1] == server.page.packed
    assert ask(server, "/../pyproject.toml")[0] == 404
    assert ask(server, "/samples?start=x")[0] == ask(server, "/samples?start=999999999999")[0] == 200


def test_all_of_the_data_can_be_stepped_through(open_page: Open, server: Server, model: Model) -> None:
    page = open_page(server.address)
    page.get_by_label("Number of a stored sequence").fill("37")
    page.keyboard.press("Tab")
    page.wait_for_selector(f"text=stored sequence 37 of {STORED}")
    answers = [found.strip() for found in page.locator(".token-box .answer").all_inner_texts()]
    stored = model.certificate.data["tokens"]  # type: ignore[union-attr]
    assert answers == [str(c) for c in model.predict(stored[36:37])[0]]
