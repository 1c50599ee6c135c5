# A worker that charges cards: the test kills it in the middle of a step.
import os
import urllib.error
import urllib.request

from holdfast import Client, Invalid, NonRetryable, NotDone, OutcomeUnknown, Snooze, Worker

gateway = os.environ["GATEWAY_URL"]


def post(path, body, key=""):
    request = urllib.request.Request(gateway + path, body.encode(), {"Idempotency-Key": key}, method="POST")
    try:
        with urllib.request.urlopen(request) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 402:
            raise NotDone("the card was declined") from error
        raise


def charge(task, work):
    id = task["context"]["entity"]["id"]
    try:
        ref = work.effect("charge", lambda key: post("/charges", id, key))
        post("/charged", id)
        if id == "stopping":
            print("charged", flush=True)
        return {"output": {"ref": ref}, "state": {"ref": ref}}
    except NotDone as error:
        raise Invalid(str(error)) from error  # nothing happened, so the step is reverted


def mail(task, work):
    event = task["context"]["event"]
    seen = post("/mails", event["name"], task["idempotencyKey"])
    if event["name"] == "later" and seen == "1":
        raise Snooze(0.001)
    if event["name"] == "flaky" and seen == "1":
        raise RuntimeError("the mail server is busy")
    if event["name"] == "hopeless":
        raise NonRetryable(f"event {event['version']} has no address")


def print_label(task, work):
    raise OutcomeUnknown("the printer does not respond")


def stamp(task, work):
    raise OutcomeUnknown("the stamp does not respond")


def probe_stamp(task, work):
    return {"output": {"happened": True, "result": "red"}, "state": {"stamp": "red"}}


worker = Worker(
    Client(os.environ["HOLDFAST_URL"]),
    {"Charge": charge, "Mail": mail, "Print": print_label, "Stamp": stamp},
    probes={"Stamp": probe_stamp},
    name=os.environ["WORKER"],
    lease=2.0,
    poll=20.0,
)
print("ready", flush=True)
worker.run()
print("stopped", flush=True)
