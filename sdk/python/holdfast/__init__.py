"""A client and a worker for Holdfast, without dependencies."""

from .client import Client
from .errors import HoldfastError
from .webhook import verify
from .worker import Invalid, NonRetryable, NotDone, OutcomeUnknown, Snooze, Work, Worker

__all__ = [
    "Client",
    "HoldfastError",
    "Invalid",
    "NonRetryable",
    "NotDone",
    "OutcomeUnknown",
    "Snooze",
    "Work",
    "Worker",
    "verify",
]
