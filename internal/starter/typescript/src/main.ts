import { Client } from "@holdfast/client";
import { newWorker, publish } from "./orders.js";

const holdfast = new Client(process.env.HOLDFAST_URL ?? "http://127.0.0.1:7070", { apiKey: process.env.HOLDFAST_KEY });
await publish(holdfast);
const worker = newWorker(holdfast, async (key, cents) => {
  console.log("charging", cents, "cents"); // call your payment provider here, with key as its idempotency key
  return "R-" + key;
});
console.log("working; stop with Ctrl-C");
await worker.run({ signals: ["SIGINT", "SIGTERM"] });
