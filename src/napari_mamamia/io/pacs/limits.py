"""A session with one PACS that comes to an end: time, silence, pace and size are bounded.

A server that sends a byte a second, headers without end or a packed bomb would otherwise hold this
program, or fill its memory, for as long as it likes: the time-out of a socket counts silence only.
Nothing is sent to another server than the one that the user named, whatever an answer points to:
a request holds the UIDs and the patient's id that it asks for.
"""

import io
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from requests import PreparedRequest, Request, Response, Session
from requests.adapters import HTTPAdapter

_PIECE: Final = 1 << 16
# zlib's 15 for the window, and 32 to tell from the head which of the two it is.
_ZLIB_OR_GZIP: Final = 47


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """What a PACS may take and send.

    `idle_s` is the longest silence. From `grace_s` on a transfer must have brought
    `bytes_per_s` on average. `list_s` and `list_bytes` bound a whole list, all its pages, and each
    answer to a stored file; `image_s` and `image_bytes` one image; `study_bytes` all images of one
    study; `n_images` and `n_studies` the entries of a list.
    """

    idle_s: float = 20.0
    grace_s: float = 60.0
    bytes_per_s: float = 1024.0
    list_s: float = 300.0
    list_bytes: int = 1 << 28
    image_s: float = 3600.0
    image_bytes: int = 1 << 31
    study_bytes: int = 1 << 36
    n_images: int = 200_000
    n_studies: int = 1000


class Pace:
    """How long and how much a transfer may still be; `reason` says what ended it, "" nothing."""

    def __init__(self, limits: TransferLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self.reason = ""
        self.begin(limits.list_bytes, limits.list_s)

    def begin(self, most_bytes: int, most_s: float) -> None:
        """Begin a transfer of at most so many bytes and seconds."""
        self.reason = ""
        self._most_bytes, self._most_s = most_bytes, most_s
        self._start = self._clock()
        self._n_sent = self._n_received = 0

    @property
    def most_bytes(self) -> int:
        """How many bytes the transfer may bring, unpacked."""
        return self._most_bytes

    def wait_s(self) -> float:
        """Return how long the next bytes may take to come or go.

        Raises
        ------
        TimeoutError
            If the transfer took too long already, or is too slow.
        """
        limits, spent = self._limits, self._clock() - self._start
        n_bytes = self._n_sent + self._n_received
        left = min(self._most_s, limits.grace_s + n_bytes / limits.bytes_per_s) - spent
        if left <= 0:
            self.stop(f"it took {spent:.3g} s for {n_bytes} bytes, and was stopped")
        return min(limits.idle_s, left)

    def silent(self) -> None:
        """Say that nothing came for as long as `wait_s` allowed."""
        self.wait_s()
        self.stop(f"nothing came for {self._limits.idle_s:g} s")

    def took(self, n_sent: int, n_received: int) -> None:
        """Count bytes that went and came.

        Raises
        ------
        TimeoutError
            If they are more than the transfer may bring.
        """
        self._n_sent += n_sent
        self._n_received += n_received
        if self._n_received > self._most_bytes + _PIECE:  # the headers beside it
            self.too_large()

    def too_large(self) -> None:
        """Say that more came than was asked for."""
        self.stop(f"it sends more than {self._most_bytes / (1 << 20):.4g} MiB")

    def stop(self, reason: str) -> None:
        """End the transfer; the reason survives what the libraries between make of it."""
        self.reason = reason
        raise TimeoutError(reason)


def limited_session(pace: Pace, url: str) -> Session:
    """Return a session with the server of `url` alone.

    Its answers are read whole, unpacked and within the limits of `pace`.

    Raises
    ------
    ValueError
        If `url` is no address.
    """
    session = _OneServerSession(pace)
    session.max_redirects = 5
    session.headers["Accept-Encoding"] = "identity"
    session.adapters.clear()
    for start in _list_starts(url):
        session.mount(start, _Adapter(pace))
    session.hooks["response"] = [lambda answer, *_, **__: _take_body(answer, pace)]
    return session


_PORTS: Final = {"http": 80, "https": 443}
_KEEPS_METHOD: Final = (307, 308)
"""Other redirects make a POST a GET: a file would not be stored. Source: RFC 9110, 15.4."""


def _list_starts(url: str) -> set[str]:
    """Return how every address on the server of `url` begins: its scheme, name and port.

    From ``http`` also those of ``https`` at the same port, or at its usual one from the usual one.
    """
    parts = urlsplit((Request("GET", url).prepare().url or "").lower())
    usual = _PORTS.get(parts.scheme)
    if usual is None or not parts.hostname:
        raise ValueError("an address begins with http:// or https:// and a name")
    user = parts.netloc.rpartition("@")[0]
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port or usual
    starts = set()
    for scheme in ("http", "https") if parts.scheme == "http" else ("https",):
        same = _PORTS[scheme] if port == usual else port
        places = (f"{name}:{same}", name) if same == _PORTS[scheme] else (f"{name}:{same}",)
        starts |= {f"{scheme}://{place}/" for place in places}
        starts |= {f"{scheme}://{user}@{place}/" for place in places if user}
    return starts


class _OneServerSession(Session):
    """Sends to the addresses that it has an adapter for, and stops its pace with the first other.

    The beginning of an address decides as it is written: no two programs read it differently.
    """

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def get_adapter(self, url: str) -> Any:
        """Return the adapter of an address on this server."""
        if not url.lower().startswith(tuple(self.adapters)):
            parts = urlsplit(url)
            where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
            self._pace.stop(
                f"it redirects to another server, {where[:100]}, which was not asked: give that "
                "address if you trust it"
            )
        return super().get_adapter(url)

    def get_redirect_target(self, resp: Response) -> str | None:
        """Return where an answer redirects to, None where it does not."""
        target = super().get_redirect_target(resp)
        request: PreparedRequest = resp.request
        if target and request.method != "GET" and resp.status_code not in _KEEPS_METHOD:
            self._pace.stop(
                f"it redirects a file that is to be stored (status {resp.status_code}) to "
                f"{target[:100]}, where it would not arrive: give that address"
            )
        return target


class _Adapter(HTTPAdapter):
    """Makes connections whose sockets keep to a pace."""

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def get_connection_with_tls_context(self, *args: Any, **named: Any) -> Any:
        """Return the pool of a request, as always, but with our connections in it."""
        pool = super().get_connection_with_tls_context(*args, **named)
        if not hasattr(pool.ConnectionCls, "keeps_pace"):
            pool.ConnectionCls = _pace_connection(pool.ConnectionCls, self._pace)
        return pool


def _pace_connection(connection: type[Any], pace: Pace) -> type[Any]:
    def connect(self: Any) -> None:
        connection.connect(self)
        self.sock = _PacedSocket(self.sock, pace)

    return type("PacedConnection", (connection,), {"connect": connect, "keeps_pace": True})


class _PacedSocket:
    """A socket whose every read and write ends in time; all else is the socket's own."""

    def __init__(self, sock: Any, pace: Pace) -> None:
        self._sock = sock
        self._pace = pace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        """Return a stream that is read at the pace."""
        raw = self._sock.makefile("rb", buffering=0)
        return io.BufferedReader(_PacedStream(raw, self._sock, self._pace))

    def sendall(self, data: Any) -> None:
        """Send all, piece by piece."""
        rest = memoryview(data).cast("B")
        while rest:
            self._sock.settimeout(self._pace.wait_s())
            try:
                n_sent = self._sock.send(rest[:_PIECE])
            except TimeoutError:
                self._pace.silent()
                raise
            rest = rest[n_sent:]
            self._pace.took(n_sent, 0)


class _PacedStream(io.RawIOBase):
    def __init__(self, raw: Any, sock: Any, pace: Pace) -> None:
        super().__init__()
        self._raw, self._sock, self._pace = raw, sock, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._pace.wait_s())
        try:
            n_received = int(self._raw.readinto(buffer))
        except TimeoutError:
            self._pace.silent()
            raise
        self._pace.took(0, n_received)
        return n_received

    def close(self) -> None:
        self._raw.close()
        super().close()


def _take_body(answer: Response, pace: Pace) -> None:
    """Put the whole body, unpacked, in place of the stream of an answer; else hang up."""
    with closing(answer.raw) as stream:
        answer.raw = io.BytesIO(_whole_body(answer, stream, pace))


def _whole_body(answer: Response, stream: Any, pace: Pace) -> bytes | bytearray:
    packing = answer.headers.pop("Content-Encoding", "identity").strip().lower()
    if packing not in ("identity", "", "gzip", "x-gzip", "deflate"):
        pace.stop(f"it packs its answer as {packing[:20]!r}, which was not asked for")
    length = answer.headers.get("Content-Length", "")
    # Twenty digits are enough; Python refuses to read thousands.
    if length.isdigit() and int(length[:20]) > pace.most_bytes:
        pace.too_large()
    body = bytearray()
    while piece := stream.read(_PIECE):
        body += piece
        if len(body) > pace.most_bytes:
            pace.too_large()
    return body if packing in ("identity", "") else _unpack_body(body, pace)


def _unpack_body(packed: bytearray, pace: Pace) -> bytes:
    if not packed:
        return b""
    inflate = zlib.decompressobj(_ZLIB_OR_GZIP)
    whole = inflate.decompress(packed, pace.most_bytes + 1)
    if len(whole) > pace.most_bytes:
        pace.too_large()
    if not inflate.eof:
        pace.stop("its packed answer ends too early")
    return whole
