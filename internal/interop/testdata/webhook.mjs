// Verifies the message in the file MESSAGE, {headers, body}, and prints its type; then a changed body.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
const { Webhook } = createRequire(process.env.NODE_MODULES)("standardwebhooks");

const { headers, body } = JSON.parse(readFileSync(process.env.MESSAGE, "utf8"));
const webhook = new Webhook(process.env.SECRET);
console.log(webhook.verify(body, headers).type);
try {
  webhook.verify(body + " ", headers);
  console.log("accepted a changed body");
} catch (e) {
  console.log(e.name ?? e.constructor.name);
}
