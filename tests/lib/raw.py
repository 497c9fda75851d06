"""Bytes to and from a server, for requests that no client library would send."""
import json
import re
import socket
import time


class Silence(AssertionError):
    """What was waited for did not come."""


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"Answer({self.status}, {self.headers}, {self.body[:200]!r})"


class Raw:
    """One connection; answers are read one at a time. An answer of None: the server closed first."""

    def __init__(self, port, timeout=60, source=None, wrap=None):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=timeout,
                                             source_address=(source, 0) if source else None)
        if wrap is not None:
            self.sock = wrap(self.sock)
        self.buffer = b""
        self.wire = None  # bytes whose chunks are not taken apart yet; None: the body is not chunked

    def begin_chunks(self):
        """From here on what comes is a chunked body (RFC 9112 7.1)."""
        self.wire, self.buffer = self.buffer, b""
        self._take_chunks()

    def _take_chunks(self):
        while b"\r\n" in self.wire:
            line, rest = self.wire.split(b"\r\n", 1)
            size = int(line, 16)
            if len(rest) < size + 2:
                return
            self.buffer += rest[:size]
            self.wire = rest[size + 2:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())
        return self

    def _more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionError:
            data = b""
        if self.wire is None:
            self.buffer += data
        else:
            self.wire += data
            self._take_chunks()
        return bool(data)

    def answer(self, head=False):
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                return None
        top, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = top.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
        if 100 <= status < 200:
            return Answer(status, headers, b"")
        length = 0 if head or status in (204, 304) else int(headers.get("content-length", 0))
        while len(self.buffer) < length:
            if not self._more():
                break
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Answer(status, headers, body)

    def until(self, pattern, seconds=60):
        """What has come up to and with a match; raises when it does not come in time."""
        deadline = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.buffer)
            if found:
                text, self.buffer = self.buffer[:found.end()], self.buffer[found.end():]
                return text
            left = deadline - time.monotonic()
            if left <= 0:
                raise Silence(f"{pattern!r} did not come; have {self.buffer[-500:]!r}")
            self.sock.settimeout(left)
            try:
                if not self._more():
                    raise AssertionError(f"closed before {pattern!r}; have {self.buffer[-500:]!r}")
            except TimeoutError:
                continue

    def closed_within(self, seconds):
        """Seconds until the server closed, or None when it did not in time. What it sends is dropped."""
        begun = time.monotonic()
        while True:
            left = begun + seconds - time.monotonic()
            if left <= 0:
                return None
            self.sock.settimeout(left)
            try:
                if not self._more():
                    return time.monotonic() - begun
            except TimeoutError:
                return None


def request(method, path, *lines, body=b"", host="h"):
    """A request's bytes; Content-Length is added for a body."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}", *lines]
    if body:
        head.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + (body if isinstance(body, bytes) else body.encode())
