import { createHmac, timingSafeEqual } from "node:crypto";
import { HoldfastError, invalid } from "./errors.js";

const toleranceMs = 5 * 60_000;

export function verify(secrets, headers, body, { now = Date.now() } = {}) {
  const keys = [secrets].flat().map(keyOf);
  if (keys.length === 0) throw invalid("verifying a message requires at least one secret");
  const bytes = Buffer.from(body);
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => header(headers, name));
  if (id === "" || !/^\d{1,15}$/.test(timestamp)) throw refused();
  const seconds = Number(timestamp);
  if (Math.abs(now - seconds * 1000) > toleranceMs) {
    throw new HoldfastError("AUTH_ERROR", "the message's timestamp differs from the current time by more than 5 minutes: the message is a replay, or a clock is wrong");
  }
  const expected = keys.map((key) => createHmac("sha256", key).update(`${id}.${seconds}.`).update(bytes).digest());
  const given = signatures.split(/\s+/).filter((one) => one.startsWith("v1,"));
  if (!given.some((one) => expected.some((mac) => same(one, mac)))) throw refused();
  return bytes.length === 0 ? undefined : JSON.parse(bytes.toString("utf8"));
}

function same(given, mac) {
  const a = Buffer.from(given);
  const b = Buffer.from("v1," + mac.toString("base64"));
  return a.length === b.length && timingSafeEqual(a, b);
}

function refused() {
  return new HoldfastError("AUTH_ERROR", "the message has no valid signature: check the receiver's secret");
}

function keyOf(secret) {
  const text = String(secret).replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  if (key.toString("base64") !== text || key.length < 24 || key.length > 64) {
    throw invalid("a webhook secret must be whsec_ followed by 24 to 64 bytes in base64");
  }
  return key;
}

/** Returns a header of a Headers object, or of an object with names in any case. */
function header(headers, name) {
  if (typeof headers.get === "function") return headers.get(name) ?? "";
  const found = Object.entries(headers).filter(([given]) => given.toLowerCase() === name);
  return found.length === 1 && typeof found[0][1] === "string" ? found[0][1] : "";
}
