import { readFile } from "node:fs/promises";
import { Client, Worker, type Task, type Work } from "@holdfast/client";

/** Declares the handler and publishes the lifecycle. Both calls may be repeated. */
export async function publish(holdfast: Client): Promise<void> {
  await holdfast.putHandler("Charge", { kind: "worker", safety: "journaled", onUnknown: "retry" });
  await holdfast.putLifecycle("order", await readFile(new URL("../order.json", import.meta.url), "utf8"));
}

/** Returns a worker that executes the step "pay". charge calls the payment provider. */
export function newWorker(holdfast: Client, charge: (key: string, cents: number) => Promise<string>): Worker {
  return new Worker(holdfast, {
    handlers: {
      async Charge(task: Task, work: Work) {
        const { cents } = task.context.entity!.data;
        // The intent is stored before the call, and the result after it: another attempt does not call again.
        const receipt = await work.effect("charge", (key) => charge(key, cents));
        return { state: { receipt } };
      },
    },
  });
}
