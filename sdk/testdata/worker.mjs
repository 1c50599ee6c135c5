// A worker that charges cards: the test kills it in the middle of a step.
import { Client, Invalid, NonRetryable, NotDone, OutcomeUnknown, Snooze, Worker } from "@holdfast/client";

const gateway = process.env.GATEWAY_URL;

async function post(path, body, key = "", signal = undefined) {
  const response = await fetch(gateway + path, { method: "POST", headers: { "Idempotency-Key": key }, body, signal });
  if (response.status === 402) throw new NotDone("the card was declined");
  return response.text();
}

async function charge(task, work) {
  const id = task.context.entity.id;
  try {
    const ref = await work.effect("charge", (key, signal) => post("/charges", id, key, signal));
    await post("/charged", id);
    if (id === "stopping") console.log("charged");
    return { output: { ref }, state: { ref } };
  } catch (error) {
    if (error instanceof NotDone) throw new Invalid(error.message); // nothing happened, so the step is reverted
    throw error;
  }
}

async function mail(task) {
  const { name, version } = task.context.event;
  const seen = await post("/mails", name, task.idempotencyKey);
  if (name === "later" && seen === "1") throw new Snooze(1);
  if (name === "flaky" && seen === "1") throw new Error("the mail server is busy");
  if (name === "hopeless") throw new NonRetryable(`event ${version} has no address`);
}

const worker = new Worker(new Client(process.env.HOLDFAST_URL), {
  name: process.env.WORKER,
  leaseMs: 2_000,
  pollMs: 20_000,
  handlers: {
    Charge: charge,
    Mail: mail,
    async Print() {
      throw new OutcomeUnknown("the printer does not respond");
    },
    async Stamp() {
      throw new OutcomeUnknown("the stamp does not respond");
    },
  },
  probes: {
    async Stamp() {
      return { output: { happened: true, result: "red" }, state: { stamp: "red" } };
    },
  },
});
console.log("ready");
await worker.run();
console.log("stopped");
