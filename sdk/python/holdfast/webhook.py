from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from typing import Any, Mapping, Sequence

from .errors import HoldfastError, invalid

_TOLERANCE = 5 * 60


def verify(secrets: str | Sequence[str], headers: Mapping[str, str], body: bytes | str, *, now: float | None = None) -> Any:
    """Verifies a message of a webhook, or a call of an http handler, and returns its JSON body.

    It raises a HoldfastError with the code AUTH_ERROR if the message was not signed with one of the secrets, or if its time differs
    from now by more than 5 minutes. The body must be exactly as it was received. A message that is sent again has the same
    Webhook-Id: store the id with your result.
    """
    keys = [_key_of(one) for one in ([secrets] if isinstance(secrets, str) else secrets)]
    if not keys:
        raise invalid("verifying a message requires at least one secret")
    raw = body.encode() if isinstance(body, str) else bytes(body)
    id, timestamp, signatures = (_header(headers, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not id or not re.fullmatch(r"[0-9]{1,15}", timestamp):
        raise _refused()
    if abs((time.time() if now is None else now) - int(timestamp)) > _TOLERANCE:
        raise HoldfastError(
            "AUTH_ERROR",
            "the message's timestamp differs from the current time by more than 5 minutes: the message is a replay, or a clock is wrong",
        )
    signed = f"{id}.{int(timestamp)}.".encode() + raw
    expected = [b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in keys]
    given = signatures.encode().split()
    if not any(hmac.compare_digest(one, mac) for one in given for mac in expected):
        raise _refused()
    return json.loads(raw) if raw else None


def _refused() -> HoldfastError:
    return HoldfastError("AUTH_ERROR", "the message has no valid signature: check the receiver's secret")


def _key_of(secret: str) -> bytes:
    text = secret[len("whsec_") :] if secret.startswith("whsec_") else secret
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not 24 <= len(key) <= 64:
        raise invalid("a webhook secret must be whsec_ followed by 24 to 64 bytes in base64")
    return key


def _header(headers: Mapping[str, str], name: str) -> str:
    found = [value for given, value in headers.items() if given.lower() == name]
    return found[0] if len(found) == 1 else ""
