// A worker that charges cards and sends mail for invoices. A card is charged once: the intent
// is journaled before the gateway is called, and the gateway honors the key.

import { Invalid, NotDone, Worker, type Task, type Work } from "./holdfast.ts";

const env = (name: string, otherwise = ""): string => process.env[name] ?? otherwise;
const gateway = env("GATEWAY_URL", "http://127.0.0.1:9090");

async function post(path: string, body: object, key: string, signal: AbortSignal): Promise<any> {
  const response = await fetch(gateway + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify(body),
    signal,
  });
  if (response.status === 402) throw new NotDone("the card was declined");
  if (!response.ok) throw new Error(`the gateway returned ${response.status}`);
  return response.json();
}

async function charge(task: Task, work: Work) {
  const cents = task.context.entity?.data.cents;
  if (!Number.isSafeInteger(cents) || cents <= 0) throw new Invalid("nothing to charge: cents must be a positive integer");
  try {
    const { ref } = await work.effect("charge", (key, signal) => post("/charges", { cents }, key, signal));
    return { output: { ref }, state: { ref } };
  } catch (error) {
    if (error instanceof NotDone) throw new Invalid(error.message); // no effect happened, so the step is reverted
    throw error;
  }
}

async function mail(task: Task, work: Work) {
  await post("/mails", { event: task.context.event?.name, data: task.input }, task.idempotencyKey, work.signal);
}

const worker = new Worker({
  url: env("HOLDFAST_URL", "http://127.0.0.1:7070"),
  key: env("HOLDFAST_KEY"),
  workspace: env("HOLDFAST_WORKSPACE"),
  name: env("WORKER", `worker-${process.pid}`),
  leaseMs: Number(env("LEASE_MS", "30000")),
  handlers: { Charge: charge, Mail: mail },
  log: (message, facts) => console.error(message, JSON.stringify(facts)),
});

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => worker.stop());
console.log("ready");
await worker.run();
console.log("stopped");
