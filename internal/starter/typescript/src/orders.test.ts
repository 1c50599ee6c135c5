import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Client } from "@holdfast/client";
import { newWorker, publish } from "./orders.js";

test("many clicks are one charge", async (t) => {
  const holdfast = new Client(await serve(t.after.bind(t)));
  await publish(holdfast);
  const charges: string[] = [];
  const worker = newWorker(holdfast, async (key) => `R-${charges.push(key)}`);
  const working = worker.run();
  try {
    await holdfast.createEntity("order", { id: "o-1", data: { cents: 1200 } });
    const clicks = await Promise.allSettled(Array.from({ length: 8 }, () => holdfast.fireStep("order", "o-1", "pay", { requester: "customer" })));
    assert.equal(clicks.filter((c) => c.status === "fulfilled").length, 1);
    for (const c of clicks) if (c.status === "rejected") assert.match(c.reason.code, /^(CLAIM_FAILED|INVALID_TRANSITION)$/);
    const order = await holdfast.getEntity("order", "o-1");
    assert.equal(order.status, "paid");
    assert.equal(order.data.receipt, "R-1");
    assert.equal(charges.length, 1);
  } finally {
    worker.stop();
    await working;
  }
});

/** Starts a server on a new database, which is removed after the test, and returns its URL. */
async function serve(after: (f: () => Promise<void>) => void): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "holdfast-"));
  const server = spawn(process.env.HOLDFAST ?? "holdfast", ["dev", "--listen", "127.0.0.1:0", "--log-level", "warn"], {
    cwd: dir,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve, reject) => server.on("exit", () => resolve()).on("error", reject));
  after(async () => {
    server.kill();
    await ended;
    await rm(dir, { recursive: true });
  });
  const ready = (async () => {
    for await (const line of createInterface(server.stdout)) {
      if (line.startsWith("holdfast ready url=")) return line.slice("holdfast ready url=".length);
    }
  })();
  const url = await Promise.race([ready, ended]);
  if (!url) throw new Error("the server did not start");
  return url;
}
