# Calls a server directly, and through a proxy that breaks connections, and prints what it got.
import json
import os
from datetime import datetime, timedelta, timezone

from holdfast import Client, HoldfastError

direct = Client(os.environ["HOLDFAST_URL"])
through = Client(os.environ["PROXY_URL"])


def refusal(call):
    try:
        call()
    except HoldfastError as error:
        return error
    raise AssertionError("the call was not refused")


def text(value):
    return json.dumps(value, separators=(",", ":"))


# Errors.
missing = refusal(lambda: direct.get_entity("none", "x"))
print("missing:", missing.code, missing.status, text(missing.retryable), text(missing.request_id != ""))
direct.append_events("a/b", {"expectedVersion": -1, "events": [{"name": "placed", "data": {"text": "ä"}}]})
late = refusal(lambda: direct.append_events("a/b", {"expectedVersion": -1, "events": [{"name": "placed"}]}))
print("late:", late.code, late.status, text(late.retryable), late.data["lastVersion"])
away = refusal(lambda: Client(os.environ["AWAY_URL"], max_attempts=1).delete_handler("h"))
print("away:", away.code, away.status, text(away.retryable))
print("wrong:", refusal(lambda: Client("ftp://x")).code)
print("empty:", refusal(lambda: direct.get_stream("")).code)
other = refusal(lambda: Client(os.environ["OTHER_URL"]).get_stream("s"))
print("other:", other.code, text(other.retryable))

# Names that a path must escape.
for event in direct.read_stream("a/b"):
    print("escaped:", event["stream"], event["data"]["text"])


# A key of the caller.
def again():
    return direct.append_events("keyed", {"events": [{"name": "placed"}]}, idempotency_key="k 1")


print("key:", again()["lastVersion"], again()["lastVersion"])
mismatch = refusal(lambda: direct.append_events("keyed", {"events": [{"name": "other"}]}, idempotency_key="k 1"))
print("mismatch:", mismatch.code, mismatch.status)

# Lost responses: each call is retried with its own key.
for name in ("lose-1", "lose-2"):
    print("lost:", through.append_events("lost", {"events": [{"name": name}]})["lastVersion"])

# Pages.
direct.append_events("long", {"events": [{"name": f"n{n}"} for n in range(250)]})
read = [event["version"] for event in direct.read_stream("long", limit=100)]
assert read == list(range(250)), read
page = direct.read_stream_page("long", limit=100, backward=True)
print("pages:", len(read), page["items"][0]["version"], len(page["items"]), text(page["next"] is not None))
until = datetime.now(timezone.utc) + timedelta(hours=1)
print("search:", *(event["name"] for event in direct.search_events(stream="a/b", since=datetime.fromtimestamp(0, timezone.utc), until=until)))

# Scopes: conditions, null, and a YAML document.
direct.patch_scope("cart", "c1", {"total": 1}, if_none_match="*")
twice = refusal(lambda: direct.patch_scope("cart", "c1", {"total": 2}, if_none_match="*"))
unread = refusal(lambda: direct.get_scope("cart", "c1", if_none_match=0))
direct.set_scope_record("cart", "c1", "items", "x", None, if_match=0)
print("scope:", twice.code, unread.code, text(direct.get_scope("cart", "c1")["state"]))
defined = direct.put_definition("name: nap\nversion: 1\nsteps:\n  - name: rest\n    type: wait\n    durationMs: 1\n", dry_run=True)
print("yaml:", defined["id"])
print("optional:", refusal(lambda: direct.cancel_run("none")).code)

# The feed, over a connection that breaks in the middle of an event.
first = []
for event in through.follow_feed():
    if event["stream"] != "long":
        first.append(event["stream"])
    elif event["version"] == 249:
        break
print("feed:", *first)
rest = []
for event in through.follow_feed(after=direct.read_stream_page("long", from_=248)["items"][0]["position"]):
    rest.append(event["name"])
    if event["name"] == "n249":
        direct.append_events("long", {"events": [{"name": "cut-here"}, {"name": "after"}]})
    if event["name"] == "after":
        break
print("resumed:", *rest)

# Other event streams.
for message in direct.follow_live(["inbox", "lifecycle:a,b"]):
    print("live:", len(message["changes"]), text(message["cursor"] != ""))
    break
for scope in direct.watch_scope("cart", "c2"):
    print("watched:", scope["version"], text(scope["state"]))
    if scope["version"] == 0:
        break
    direct.inc_scope("cart", "c2", {"field": "n", "by": 2})
print("refused:", refusal(lambda: next(direct.follow_live(["nothing"]))).code)
