from __future__ import annotations

import email.utils
import http.client
import json
import random
import select
import socket
import ssl
import threading
import time
import uuid
from datetime import datetime, timezone
from typing import Any, Callable, Generator, Iterator
from urllib.parse import quote, urlencode, urlsplit

from . import types as t
from ._api import Api
from .errors import HoldfastError, invalid

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
# A longer Retry-After is not waited for: the call fails.
_MAX_RETRY_AFTER = 60.0
# An event stream without data for so long is dead: the server sends a comment every 15 seconds.
_SILENCE = 45.0
# Longer than any response of the server takes.
_TIMEOUT = 90.0

_PROBLEM = "application/problem+json"
_ABSENT: Any = object()
_PROXY_STATUSES = (429, 502, 503, 504)


class Client(Api):
    """A client for the HTTP API of one server. It is safe for concurrent use.

    Calls are retried after temporary failures: a call that changes something has an idempotency key, so it takes effect once. The
    default is a new key for each call, which its retries share; give an idempotency_key if your program may repeat the call, for
    example after it was restarted. Lists are iterators that read page after page; the methods named …_page read one.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:7070",
        *,
        api_key: str = "",
        workspace: str = "",
        max_attempts: int = 6,
        timeout: float = _TIMEOUT,
        tls: ssl.SSLContext | None = None,
        user_agent: str = "holdfast-python",
    ):
        at = urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname or at.query or at.fragment or "@" in at.netloc:
            raise invalid("the server URL must be an http or https URL such as http://127.0.0.1:7070, without a user, query or fragment")
        if max_attempts < 1:
            raise invalid(f"max_attempts must be 1 or more, got {max_attempts}")
        self._host = at.netloc
        self._base = at.path.rstrip("/") + "/api/v1"
        self._max_attempts = max_attempts
        self._timeout = timeout
        self._headers = {"User-Agent": user_agent}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        if workspace:
            self._headers["X-Holdfast-Workspace"] = workspace
        if at.scheme == "https":
            context = tls or ssl.create_default_context()
            self._connection: Callable[[], http.client.HTTPConnection] = lambda: http.client.HTTPSConnection(self._host, timeout=timeout, context=context)
        else:
            self._connection = lambda: http.client.HTTPConnection(self._host, timeout=timeout)
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def follow_feed(self, after: str | None = None) -> Iterator[t.Event]:
        """Yields each event of the feed after a position (None is the beginning), then each new event, once and in order.

        It reconnects after the last event, until the loop ends or the server refuses.
        """
        return self._follow(["events"], after)

    def follow_activity(self) -> Iterator[t.Event]:
        """Yields the histories and events of the workspace from now on. Events from before a broken connection may be repeated."""
        return self._follow(["feed"])

    def follow_live(self, topics: list[str], after: str | None = None) -> Iterator[t.Live]:
        """Yields what changes in topics, such as "inbox" or "lifecycle:invoice". The first message has no changes."""
        watch = ",".join(topic.replace("%", "%25").replace(",", "%2C") for topic in topics)
        return self._follow(["live"], after, query={"watch": watch})

    def follow_batch(self, id: str) -> Iterator[t.Event]:
        """Yields the events of a batch up to its end."""
        return self._follow(["batches", id, "events"], is_last=_ended)

    def follow_run(self, id: str) -> Iterator[t.Event]:
        """Yields the events of a run up to its end."""

        def is_over(event: Any) -> bool:
            # A run that has failed can be retried: its stream goes on, so it is read again after a break.
            if not event or event["name"] != "failed":
                return False
            try:
                return self.get_run(id)["status"] == "FAILED"
            except HoldfastError:
                return False

        return self._follow(["workflow-runs", id, "events"], is_last=_ended, is_over=is_over)

    def watch_scope(self, kind: str, id: str) -> Iterator[t.Scope]:
        """Yields the current state of a scope, then its state after each change. A scope that does not exist has version -1."""
        return self._follow(["scopes", kind, id])

    def _pages(self, page: Any, cursor: str | None = None) -> Iterator[Any]:
        while True:
            got = page(cursor)
            yield from got["items"]
            if got.get("next") is None or got["next"] == cursor:
                return
            cursor = got["next"]

    def _send(
        self,
        method: str,
        path: list,
        *,
        repeat: str,
        query: dict[str, Any] | None = None,
        body: Any = _ABSENT,
        optional: bool = False,
        yaml: bool = False,
        key: str | None = None,
        if_match: int | str | None = None,
        if_none_match: int | str | None = None,
    ) -> Any:
        """Sends a request of a generated method. The attempts have the same idempotency key."""
        url = self._url(path, query or {})
        headers = {**self._headers, "Accept": f"application/json, {_PROBLEM}"}
        if repeat == "key":
            headers["Idempotency-Key"] = key or str(uuid.uuid4())
        for name, version in (("If-Match", if_match), ("If-None-Match", if_none_match)):
            if version is not None:
                headers[name] = "*" if version == "*" else f'"{version}"'
        content = None
        if yaml and isinstance(body, str):
            headers["Content-Type"], content = "application/yaml", body.encode()
        elif body is not _ABSENT and not (optional and body is None):
            headers["Content-Type"], content = "application/json", json.dumps(body).encode()
        lost = "UNAVAILABLE" if method == "GET" else "OUTCOME_UNKNOWN"
        attempts = 1 if repeat == "never" else self._max_attempts
        backoff, unknown = Backoff(), False
        while True:
            attempts -= 1
            try:
                return self._once(method, url, headers, content, lost)
            except HoldfastError as error:
                unknown = unknown or error.code == "OUTCOME_UNKNOWN"
                if attempts > 0 and error.retryable and backoff.wait(error.retry_after):
                    continue
                # A temporary failure says nothing about an earlier attempt that may have taken effect.
                if not unknown or not error.retryable or error.code == "OUTCOME_UNKNOWN":
                    raise
                raise HoldfastError("OUTCOME_UNKNOWN", f"an earlier attempt may have taken effect: {error.detail}") from error

    def _url(self, path: list, query: dict[str, Any]) -> str:
        url = self._base
        for part in path:
            if not isinstance(part, str) or part == "":
                raise invalid(f"names and ids must not be empty, got the path {path}")
            url += "/" + (part.replace(".", "%2E") if part in (".", "..") else quote(part, safe=""))
        text = urlencode({name: _parameter(value) for name, value in query.items() if value is not None and value != ""})
        return f"{url}?{text}" if text else url

    def _once(self, method: str, url: str, headers: dict[str, str], content: bytes | None, lost: str) -> Any:
        """Sends a request once."""
        connection, response = self._request(method, url, headers, content, lost)
        try:
            body = response.read()
        except (OSError, http.client.HTTPException) as cause:
            connection.close()
            raise HoldfastError(lost, "the connection was lost before the response was complete") from cause
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        if response.status == 304:
            raise HoldfastError("NOT_MODIFIED", "the scope still has this version", status=304)
        if not 200 <= response.status <= 299:
            raise _refusal(response, body, lost)
        if response.status == 204:
            return None
        if _content_type(response) != "application/json":
            raise _foreign(response, body, lost)
        try:
            return json.loads(body)
        except ValueError as cause:
            raise _not_holdfast(lost, "an unexpected response") from cause

    def _request(self, method: str, url: str, headers: dict[str, str], content: bytes | None, lost: str, fresh: bool = False) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a request, and returns its connection and the response with its body unread."""
        connection = None if fresh else self._reuse()
        if connection is None:
            connection = self._connection()
            try:
                connection.connect()
            except OSError as cause:
                raise HoldfastError("UNAVAILABLE", f"the server at {self._host} cannot be reached") from cause
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            connection.request(method, url, content, headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as cause:
            connection.close()
            raise HoldfastError(lost, f"the server at {self._host} closed the connection before it responded") from cause

    def _reuse(self) -> http.client.HTTPConnection | None:
        """Returns an idle connection that the server has not closed."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.sock is not None and not _readable(connection.sock):
                return connection
            connection.close()

    def _follow(self, path: list, after: str | None = None, *, query: dict[str, str] | None = None, is_last: Any = None, is_over: Any = None) -> Iterator[Any]:
        """Follows an event stream, and reconnects after the last event that it yielded."""
        url = self._url(path, query or {})
        backoff, state, last = Backoff(), {"connected": False}, None
        attempts = self._max_attempts
        while True:
            attempts -= 1
            failed = HoldfastError("UNAVAILABLE", "the event stream ended")
            events = self._events(url, after, state)
            try:
                for id, value in events:
                    if id == after:
                        continue
                    after, last, backoff = id, value, Backoff()
                    yield value
                    if is_last and is_last(value):
                        return
            except HoldfastError as error:
                failed = error
            finally:
                events.close()
            if state["connected"] and is_over and is_over(last):
                return
            if not failed.retryable or (not state["connected"] and attempts <= 0) or not backoff.wait(failed.retry_after):
                raise failed

    def _events(self, url: str, after: str | None, state: dict[str, bool]) -> Generator[tuple[str, Any], None, None]:
        """Yields the events of one connection. An event without the empty line after it is incomplete."""
        headers = {**self._headers, "Accept": f"text/event-stream, {_PROBLEM}"}
        if after:
            headers["Last-Event-ID"] = after
        connection, response = self._request("GET", url, headers, None, "UNAVAILABLE", fresh=True)
        try:
            if response.status != 200 or _content_type(response) != "text/event-stream":
                raise _refusal(response, response.read(), "UNAVAILABLE")
            state["connected"] = True
            if connection.sock is not None:  # None if the server closes the connection after the response
                connection.sock.settimeout(_SILENCE)
            id, data = "", ""
            for raw in response:
                if not raw.endswith(b"\n"):
                    break
                line = raw.decode().rstrip("\r\n")
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "id":
                    id = value
                elif name == "data":
                    data += value + "\n"
                if line == "":
                    if data:
                        yield id, _event_of(id, data)
                    id, data = "", ""
        except (OSError, http.client.HTTPException) as cause:
            raise HoldfastError("UNAVAILABLE", "the connection was lost before the response was complete") from cause
        finally:
            response.close()
            connection.close()


def _event_of(id: str, data: str) -> Any:
    try:
        value = json.loads(data)
    except ValueError as cause:
        raise _not_holdfast("UNAVAILABLE", "an event that cannot be decoded") from cause
    if not id:
        raise _not_holdfast("UNAVAILABLE", "an event that cannot be decoded")
    return value


def _ended(event: Any) -> bool:
    """No event follows it."""
    return event["name"] in ("completed", "cancelled")


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return str(value)


def _readable(sock: socket.socket) -> bool:
    """Reports whether an idle connection has data: then the server has closed it."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _content_type(response: http.client.HTTPResponse) -> str:
    return (response.getheader("Content-Type") or "").split(";")[0].strip().lower()


def _refusal(response: http.client.HTTPResponse, body: bytes, lost: str) -> HoldfastError:
    if _content_type(response) == _PROBLEM:
        try:
            problem = json.loads(body)
        except ValueError:
            problem = None
        if isinstance(problem, dict) and problem.get("code"):
            return HoldfastError.of(problem, _retry_after(response))
    return _foreign(response, body, lost)


def _foreign(response: http.client.HTTPResponse, body: bytes, lost: str) -> HoldfastError:
    """Returns the error for a response that no Holdfast server sends, such as a proxy's page."""
    error = _not_holdfast(lost, f"status {response.status}, which is not an API response")
    error.__cause__ = ValueError(f"{response.status} {_content_type(response)}: {body[:200]!r}")
    error.retryable = response.status in _PROXY_STATUSES
    error.retry_after = _retry_after(response)
    return error


def _not_holdfast(lost: str, what: str) -> HoldfastError:
    return HoldfastError(lost, f"the server responded with {what}: check that the URL belongs to a Holdfast server", retryable=False)


def _retry_after(response: http.client.HTTPResponse) -> float:
    """A date is relative to the response's own Date, so the local clock does not matter."""
    text = response.getheader("Retry-After") or ""
    if text.isdigit():
        return float(text)
    try:
        until, now = (email.utils.parsedate_to_datetime(at) for at in (text, response.getheader("Date") or ""))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return 0.0


class Backoff:
    """The delays between attempts: each up to twice as long as the previous one, with jitter."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    def wait(self, at_least: float = 0, stop: threading.Event | None = None) -> bool:
        """Waits. It returns False if the server asks for too long, or if stop is set."""
        if at_least > _MAX_RETRY_AFTER:
            return False
        seconds = random.uniform(self._next / 2, self._next) + at_least
        self._next = min(2 * self._next, _LONGEST_PAUSE)
        if stop is not None:
            return not stop.wait(seconds)
        time.sleep(seconds)
        return True
