"""A page on the loopback address, for data that outgrow a file: a browser on this machine asks for the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from onelayer.explorer.page import Page, render
from onelayer.explorer.payload import Arrays, seal
from onelayer.explorer.samples import Samples, some

LOOPBACK = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Answers only requests that were meant for it: a page elsewhere that names another host is refused."""

    daemon_threads = True

    def __init__(self, page: Page, port: int = 0) -> None:
        self.page = page
        super().__init__((LOOPBACK, port), Handler)

    @property
    def hosts(self) -> tuple[str, str]:
        return f"{LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/"


class Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "onelayer", ""

    def do_GET(self) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            self._send(421, "text/plain", b"This page is for a browser on the machine that serves it.\n")
            return
        asked = urlsplit(self.path)
        answers: dict[str, Callable[[], tuple[str, bytes]]] = {
            "/": lambda: ("text/html; charset=utf-8", render(None).encode()),
            "/model": lambda: ("application/octet-stream", self.server.page.packed),
            "/samples": lambda: ("application/octet-stream", self._samples(asked.query)),
        }
        if asked.path not in answers:
            self._send(404, "text/plain", b"There is no such page.\n")
            return
        self._send(200, *answers[asked.path]())

    def _samples(self, query: str) -> bytes:
        samples = self.server.page.samples
        said = parse_qs(query).get("start", ["0"])[0]
        start = min(int(said) if said.isdecimal() else 0, samples.total)
        return pack_samples(some(samples.rows(start, samples.total)))

    def _send(self, code: int, kind: str, content: bytes) -> None:
        self.send_response(code)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def pack_samples(samples: Samples) -> bytes:
    arrays = Arrays()
    head = json.dumps({"samples": samples.to_json(arrays.add)})
    return seal(head, arrays)
