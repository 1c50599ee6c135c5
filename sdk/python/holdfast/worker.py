from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import uuid
from typing import Any, Callable, Mapping, Sequence

from . import types as t
from .client import Backoff, Client
from .errors import HoldfastError, invalid


class Invalid(Exception):
    """Refuses a step of a lifecycle as invalid; any other task fails without a retry."""


class NonRetryable(Exception):
    """Fails the task: a retry cannot succeed. Any other error of a handler is a failure that may be retried."""


class NotDone(Exception):
    """Raised by the call of an effect: the effect did not happen, for example because the card was declined."""


class OutcomeUnknown(Exception):
    """Ends the task without a report: it is not known whether an opaque handler has acted.

    After the lease, onUnknown of the handler decides.
    """


class Snooze(Exception):
    """Gives the task back until a later time, up to 30 days. A step of a lifecycle cannot be given back."""

    def __init__(self, seconds: float):
        super().__init__(f"snoozed for {seconds} s")
        self.seconds = seconds


class Work:
    """A task in execution."""

    def __init__(self, client: Client, task: t.Task, lease: float):
        self.task = task
        self.cancel_requested = False
        self._client = client
        self._lease = lease
        self._held_until = time.monotonic() + lease
        self._lost = False

    @property
    def lost(self) -> bool:
        """Whether the lease was lost: another worker may have the task, and nothing is reported."""
        return self._lost or time.monotonic() >= self._held_until

    def check(self) -> None:
        """Raises an error if the lease was lost, or if the task is to be cancelled. Call it regularly in long work."""
        if self.lost:
            raise HoldfastError("LEASE_LOST", "the lease of the task was lost: stop working")
        if self.cancel_requested:
            raise HoldfastError("CANCELLED", "the task is to be cancelled: stop working")

    def effect(self, name: str, call: Callable[[str], Any], *, ordinal: int = 0) -> Any:
        """Calls another system as a journaled effect, with an idempotency key, and returns the result, which must be JSON.

        The intent is stored before the call, and the result after it. A later attempt gets the stored result without another call.
        The other system must honor the key if the handler's onUnknown is "retry". If the call raises an error other than NotDone,
        the outcome of the effect is unknown, and onUnknown decides. ordinal distinguishes effects with the same name.
        """
        self.check()
        of = {"name": name, "ordinal": ordinal}
        begun = self._persist(lambda: self._journal(of))
        if begun["state"] == "done":
            return begun.get("result")
        if time.monotonic() >= self._held_until:
            self.renew()
        if self.lost:
            self.check()
        try:
            result = call(begun["key"])
        except NotDone:
            self._persist(lambda: self._journal({**of, "notDone": True}))
            raise
        self._persist(lambda: self._journal({**of, "result": result}))
        return result

    def renew(self) -> None:
        """Renews the lease. The worker does so regularly by itself."""
        sent = time.monotonic()
        renewed = self._client.renew_task(self.task["id"], {"epoch": self.task["epoch"], "leaseMs": int(self._lease * 1000)})
        self._held_until = sent + self._lease
        self.cancel_requested = self.cancel_requested or renewed["cancelRequested"]

    def _renew_until(self, done: threading.Event) -> None:
        while not done.wait(self._lease / 3) and not self.lost:
            try:
                self.renew()
            except HoldfastError as error:
                self._lost = self._lost or not error.retryable  # otherwise the lease may still be valid

    def _end(self, verb: Callable[[str, Any], Any], body: dict[str, Any]) -> None:
        self._persist(lambda: verb(self.task["id"], {"epoch": self.task["epoch"], **body}))

    def _journal(self, effect: dict[str, Any]) -> Any:
        body: Any = {"epoch": self.task["epoch"], **effect}
        return self._client.journal_task_effect(self.task["id"], body)

    def _persist(self, call: Callable[[], Any]) -> Any:
        """Repeats a call, which the epoch makes safe, as long as the lease lasts."""
        backoff = Backoff()
        while True:
            try:
                return call()
            except HoldfastError as error:
                self._lost = self._lost or error.code == "LEASE_LOST"
                if not error.retryable or self.lost or not backoff.wait(error.retry_after):
                    raise


Handler = Callable[[Any, Work], Any]


class Worker:
    """Claims tasks of handlers and executes them, each in a thread.

    A handler gets the task and the Work. It returns None, or a dictionary with "output" (the result of the task) and "state" (a
    merge patch for the data of the entity or the state of the run).

    handlers: the functions that execute tasks, by the names of the handlers.
    probes: the functions that find out whether an opaque handler with onUnknown "probe" has acted. They return
        {"output": {"happened": …, "result": …}}, and "state" as the handler would.
    undos: the functions that undo items of batches, by the names of the handlers.
    name: the name of the worker in leases and logs. The default contains the process id.
    concurrency: the maximum number of tasks at a time.
    lease: how many seconds a lease lasts without renewal; it is renewed after a third of that.
    poll: how many seconds a claim waits for a task, and stop for a claim.
    log: receives problems. The default writes them to stderr.
    """

    def __init__(
        self,
        client: Client,
        handlers: Mapping[str, Handler],
        *,
        probes: Mapping[str, Handler] | None = None,
        undos: Mapping[str, Handler] | None = None,
        name: str | None = None,
        concurrency: int = 4,
        lease: float = 30.0,
        poll: float = 5.0,
        log: Callable[[str, dict[str, Any]], None] | None = None,
    ):
        if not handlers:
            raise invalid("a worker needs at least one handler: set handlers")
        if concurrency < 1:
            raise invalid(f"concurrency must be 1 or more, got {concurrency}")
        self._client = client
        self._handlers = dict(handlers)
        self._probes = dict(probes or {})
        self._undos = dict(undos or {})
        self._name = name or f"worker-{os.getpid()}"
        self._concurrency = concurrency
        self._lease = lease
        self._poll = poll
        self._log = log or _to_stderr
        self._stop = threading.Event()
        self._running = 0
        self._ended = threading.Condition()

    def stop(self) -> None:
        """Stops claiming tasks."""
        self._stop.set()

    def run(self, signals: Sequence[int] = (signal.SIGTERM, signal.SIGINT)) -> None:
        """Works until stop is called or the process receives one of the signals; running tasks end first.

        Signals need the main thread; in another one, they are ignored.
        """
        previous = {}
        if threading.current_thread() is threading.main_thread():
            previous = {one: signal.signal(one, lambda *_: self.stop()) for one in signals}
        try:
            self._claim_until_stopped()
            self._wait_until_fewer(1)
        finally:
            for one, handler in previous.items():
                signal.signal(one, handler)

    def _claim_until_stopped(self) -> None:
        # A claim without a response is repeated with its key, because its tasks may have been handed out; for the same reason stop
        # does not abort it.
        claim: Any = None
        key = ""
        backoff = Backoff()
        while not self._stop.is_set():
            if claim is None:
                free = self._concurrency - self._wait_until_fewer(self._concurrency)
                claim = {"worker": self._name, "handlers": list(self._handlers), "limit": free, "leaseMs": int(self._lease * 1000), "waitMs": int(self._poll * 1000)}
                key = str(uuid.uuid4())
                continue  # stop may have been called meanwhile
            try:
                tasks = self._client.claim_tasks(claim, idempotency_key=key)["tasks"]
            except HoldfastError as error:
                self._log("claiming tasks failed", {"error": str(error)})
                if not error.retryable:
                    claim = None  # it was refused, so no task was handed out
                backoff.wait(min(error.retry_after, 30), self._stop)
                continue
            claim, backoff = None, Backoff()
            for task in tasks:
                with self._ended:
                    self._running += 1
                threading.Thread(target=self._work, args=(task,), name=f"holdfast {task['id']}").start()

    def _wait_until_fewer(self, than: int) -> int:
        """Waits until fewer tasks are in execution, and returns how many are."""
        with self._ended:
            self._ended.wait_for(lambda: self._running < than)
            return self._running

    def _work(self, task: t.Task) -> None:
        work = Work(self._client, task, self._lease)
        done = threading.Event()
        renewal = threading.Thread(target=work._renew_until, args=(done,), daemon=True)
        try:
            work.renew()  # the task counts as received: from here on, a crash is counted
            renewal.start()
            verb, body = self._outcome(task, work)
            if verb is None:
                self._log("task ended without a report, because its outcome is unknown", {"task": task["id"], **body})
            elif work.lost:
                self._log("lease of a task lost", {"task": task["id"]})
            else:
                work._end(verb, body)
        except Exception as error:  # the task is handed out again after its lease
            self._log("reporting the outcome of a task failed", {"task": task["id"], "error": str(error)})
        finally:
            done.set()
            if renewal.is_alive():
                renewal.join()
            with self._ended:
                self._running -= 1
                self._ended.notify_all()

    def _handler_of(self, task: t.Task) -> Handler:
        """A handler does not get tasks that must not act like it."""
        option, functions = {"probe": ("probes", self._probes), "undoItem": ("undos", self._undos)}.get(task["kind"], ("handlers", self._handlers))
        found = functions.get(task["handler"])
        if found is None:
            raise NonRetryable(f"the worker has no function for tasks of the kind {task['kind']} of the handler {task['handler']}: set {option}")
        return found

    def _outcome(self, task: t.Task, work: Work) -> tuple[Callable[[str, Any], Any] | None, dict[str, Any]]:
        """Runs a handler and returns what to report."""
        c = self._client
        try:
            result = self._handler_of(task)(task, work) or {}
            json.dumps(result)  # a result that is not JSON is a failure of the handler
            return c.complete_task, result
        except Snooze as error:
            return c.snooze_task, {"delayMs": int(error.seconds * 1000)}
        except OutcomeUnknown as error:
            return None, {"error": str(error)}
        except Exception as error:
            refused = isinstance(error, Invalid)
            return c.fail_task, {"message": str(error) or repr(error), "invalid": refused, "retryable": not (refused or isinstance(error, NonRetryable))}


def _to_stderr(message: str, attributes: dict[str, Any]) -> None:
    print(message, json.dumps(attributes), file=sys.stderr, flush=True)
