from __future__ import annotations

from typing import Any

# Codes of refusals that a retry may not get again.
_TEMPORARY = {"RATE_LIMITED", "KEY_IN_FLIGHT", "UNAVAILABLE", "MUTATION_TIMEOUT", "OUTCOME_UNKNOWN"}


class HoldfastError(Exception):
    """A refusal of the server, or a failure to reach it. Programs should depend only on the code.

    code: the code of the server's response, such as CLAIM_FAILED. If there is no response, it is OUTCOME_UNKNOWN if the call may
        have taken effect, and UNAVAILABLE if it changed nothing.
    detail: what is wrong and what to do.
    status: the HTTP status; 0 without a response of the server.
    data: the additional fields of the code, such as lastVersion.
    retryable: whether the same call may succeed later. Repeat a change only with the same idempotency key.
    retry_after: how many seconds the server asks to wait before the next attempt.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int = 0,
        data: dict[str, Any] | None = None,
        retryable: bool | None = None,
        retry_after: float = 0,
    ):
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.status = status
        self.data = data or {}
        self.request_id = self.data.get("requestId", "")
        self.retryable = code in _TEMPORARY if retryable is None else retryable
        self.retry_after = retry_after

    @classmethod
    def of(cls, problem: dict[str, Any], retry_after: float) -> HoldfastError:
        """Returns the error of a problem document (RFC 9457)."""
        own = ("type", "title", "status", "code", "detail")
        data = {name: value for name, value in problem.items() if name not in own}
        error = cls(problem["code"], problem.get("detail", ""), status=problem.get("status", 0), data=data, retry_after=retry_after)
        if error.code == "QUOTA_EXCEEDED":  # a quota that only time frees says when to try again
            error.retryable = retry_after > 0
        return error


def invalid(detail: str) -> HoldfastError:
    """Returns an error for wrong arguments, which no request was sent with."""
    return HoldfastError("VALIDATION_ERROR", detail)
