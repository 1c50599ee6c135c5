// Type-checked against the declarations of the SDK.
import { Client, HoldfastError, Worker, verify, type Entity, type HandlerFunction } from "@holdfast/client";

const client = new Client("http://127.0.0.1:7070", { apiKey: "hf_x" });

const charge: HandlerFunction = async (task, work) => {
  const cents: number = task.context.entity?.data.cents;
  const receipt: string = await work.effect("charge", async (key: string, signal: AbortSignal) => `${key} ${cents} ${signal.aborted}`);
  return { state: { receipt } };
};

export async function use(): Promise<Entity[]> {
  const all: Entity[] = [];
  for await (const entity of client.listEntities("invoice", { status: "open", since: new Date(), limit: 10 })) all.push(entity);
  const page = await client.listEntitiesPage("invoice");
  const next: string | null = page.next;
  const { entity, outcome } = await client.fireStep("invoice", "i-1", "pay", { requester: "admin" }, { idempotencyKey: "k", waitMs: 1000 });
  try {
    await client.cancelRun("r");
    await client.putScope("cart", "c", { next, outcome }, { ifMatch: 3 });
    await client.deleteWebhook("w", { signal: AbortSignal.abort() });
  } catch (error) {
    if (error instanceof HoldfastError && !error.retryable) throw error;
  }
  for await (const message of client.followLive(["inbox"], { after: "c" })) verify(["whsec_"], { "webhook-id": message.cursor }, "{}");
  for await (const event of client.followFeed()) all.push(event.data);
  await new Worker(client, { handlers: { Charge: charge }, concurrency: 2 }).run({ signals: ["SIGTERM"] });
  // @ts-expect-error: a requester is required
  await client.fireStep("invoice", "i-1", "pay", {});
  // @ts-expect-error: reads take no idempotency key
  await client.getRun("r", { idempotencyKey: "k" });
  return [...all, entity];
}
