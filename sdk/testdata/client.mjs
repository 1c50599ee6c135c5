// Calls a server directly, and through a proxy that breaks connections, and prints what it got.
import { Client, HoldfastError } from "@holdfast/client";

const direct = new Client(process.env.HOLDFAST_URL);
const through = new Client(process.env.PROXY_URL);

async function refusal(call) {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return error;
  }
  throw new Error("the call was not refused");
}

// Errors.
const missing = await refusal(() => direct.getEntity("none", "x"));
console.log("missing:", missing.code, missing.status, missing.retryable, missing.requestId !== "");
await direct.appendEvents("a/b", { expectedVersion: -1, events: [{ name: "placed", data: { text: "ä" } }] });
const late = await refusal(() => direct.appendEvents("a/b", { expectedVersion: -1, events: [{ name: "placed" }] }));
console.log("late:", late.code, late.status, late.retryable, late.data.lastVersion);
const away = await refusal(() => new Client(process.env.AWAY_URL, { maxAttempts: 1 }).deleteHandler("h"));
console.log("away:", away.code, away.status, away.retryable);
const wrong = await refusal(async () => new Client("ftp://x"));
console.log("wrong:", wrong.code);
const empty = await refusal(() => direct.getStream(""));
console.log("empty:", empty.code);
const other = await refusal(() => new Client(process.env.OTHER_URL).getStream("s"));
console.log("other:", other.code, other.retryable);

// Names that a path must escape.
for await (const event of direct.readStream("a/b")) console.log("escaped:", event.stream, event.data.text);

// A key of the caller.
const again = () => direct.appendEvents("keyed", { events: [{ name: "placed" }] }, { idempotencyKey: "k 1" });
console.log("key:", (await again()).lastVersion, (await again()).lastVersion);
const mismatch = await refusal(() => direct.appendEvents("keyed", { events: [{ name: "other" }] }, { idempotencyKey: "k 1" }));
console.log("mismatch:", mismatch.code, mismatch.status);

// Lost responses: each call is retried with its own key.
for (const name of ["lose-1", "lose-2"]) {
  const { lastVersion } = await through.appendEvents("lost", { events: [{ name }] });
  console.log("lost:", lastVersion);
}

// Pages.
await direct.appendEvents("long", { events: Array.from({ length: 250 }, (_, n) => ({ name: `n${n}` })) });
let read = 0;
for await (const event of direct.readStream("long", { limit: 100 })) {
  if (event.version !== read++) throw new Error(`got version ${event.version}`);
}
const page = await direct.readStreamPage("long", { limit: 100, backward: true });
console.log("pages:", read, page.items[0].version, page.items.length, page.next !== null);
const since = [];
for await (const event of direct.searchEvents({ stream: "a/b", since: new Date(0), until: new Date(Date.now() + 3_600_000) })) since.push(event.name);
console.log("search:", since.join(" "));

// Scopes: conditions, null, and a YAML document.
await direct.patchScope("cart", "c1", { total: 1 }, { ifNoneMatch: "*" });
const twice = await refusal(() => direct.patchScope("cart", "c1", { total: 2 }, { ifNoneMatch: "*" }));
const unread = await refusal(() => direct.getScope("cart", "c1", { ifNoneMatch: 0 }));
await direct.setScopeRecord("cart", "c1", "items", "x", null, { ifMatch: 0 });
console.log("scope:", twice.code, unread.code, JSON.stringify((await direct.getScope("cart", "c1")).state));
const defined = await direct.putDefinition("name: nap\nversion: 1\nsteps:\n  - name: rest\n    type: wait\n    durationMs: 1\n", { dryRun: true });
console.log("yaml:", defined.id);
console.log("optional:", (await refusal(() => direct.cancelRun("none"))).code);

// The feed, over a connection that breaks in the middle of an event.
const first = [];
for await (const event of through.followFeed()) {
  if (event.stream !== "long") first.push(event.stream);
  if (event.stream === "long" && event.version === 249) break;
}
console.log("feed:", first.join(" "));
const rest = [];
for await (const event of through.followFeed({ after: (await direct.readStreamPage("long", { from: 248 })).items[0].position })) {
  rest.push(event.name);
  if (event.name === "n249") await direct.appendEvents("long", { events: [{ name: "cut-here" }, { name: "after" }] });
  if (event.name === "after") break;
}
console.log("resumed:", rest.join(" "));

// Other event streams.
for await (const message of direct.followLive(["inbox", "lifecycle:a,b"])) {
  console.log("live:", message.changes.length, message.cursor !== "");
  break;
}
for await (const scope of direct.watchScope("cart", "c2")) {
  console.log("watched:", scope.version, JSON.stringify(scope.state));
  if (scope.version === 0) break;
  await direct.incScope("cart", "c2", { field: "n", by: 2 });
}
const unknown = await refusal(async () => {
  for await (const message of direct.followLive(["nothing"])) throw new Error(JSON.stringify(message));
});
console.log("refused:", unknown.code);
