import { randomUUID } from "node:crypto";
import { Api } from "./api.js";
import { HoldfastError, invalid } from "./errors.js";

const firstPauseMs = 100;
const longestPauseMs = 5_000;
// A longer Retry-After is not waited for: the call fails.
const maxRetryAfterMs = 60_000;
// An event stream without data for so long is dead: the server sends a comment every 15 seconds.
const silenceMs = 45_000;
// Longer than any response of the server takes.
const defaultTimeoutMs = 90_000;

const problemType = "application/problem+json";
const proxyStatuses = new Set([429, 502, 503, 504]);
// Failures before a connection exists: nothing was sent.
const unsentCodes = /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS)/;

export class Client extends Api {
  #base;
  #options;

  constructor(url = "http://127.0.0.1:7070", options = {}) {
    super();
    const base = parse(url);
    if (!base || !/^https?:$/.test(base.protocol) || base.search || base.hash || base.username || base.password) {
      throw invalid("the server URL must be an http or https URL such as http://127.0.0.1:7070, without a user, query or fragment");
    }
    const { apiKey = "", workspace = "", maxAttempts = 6, timeoutMs = defaultTimeoutMs, userAgent = "holdfast-typescript" } = options;
    if (!Number.isInteger(maxAttempts) || maxAttempts < 1) throw invalid(`maxAttempts must be 1 or more, got ${maxAttempts}`);
    this.#base = base.href.replace(/\/$/, "") + "/api/v1";
    this.#options = { apiKey, workspace, maxAttempts, timeoutMs, userAgent };
  }

  followFeed(options = {}) {
    return this.#follow(["events"], options);
  }

  followActivity(options = {}) {
    return this.#follow(["feed"], options);
  }

  followLive(topics, options = {}) {
    const watch = topics.map((topic) => topic.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");
    return this.#follow(["live"], options, { query: { watch } });
  }

  followBatch(id, options = {}) {
    return this.#follow(["batches", id, "events"], options, { isLast: ended });
  }

  followRun(id, options = {}) {
    // A run that has failed can be retried: its stream goes on, so it is read again after a break.
    const failed = () => this.getRun(id, options).then((run) => run.status === "FAILED", () => false);
    const isOver = async (event) => event?.name === "failed" && (await failed());
    return this.#follow(["workflow-runs", id, "events"], options, { isLast: ended, isOver });
  }

  watchScope(kind, id, options = {}) {
    return this.#follow(["scopes", kind, id], options);
  }

  /** Reads page after page. */
  async *pages(read) {
    for (let cursor, page = {}; ; page = { cursor }) {
      const { items, next } = await read(page);
      yield* items;
      if (next == null || next === cursor) return;
      cursor = next;
    }
  }

  /** Sends a request of a generated method. The attempts have the same idempotency key. */
  async send(request, options = {}) {
    const { method, path, query = [], repeat } = request;
    const url = this.#url(path, Object.fromEntries(query.map((name) => [name, options[name]])));
    const headers = this.#headers(options);
    if (repeat === "key") headers["Idempotency-Key"] = options.idempotencyKey ?? randomUUID();
    let body;
    if (request.body !== undefined) {
      const yaml = request.yaml && typeof request.body === "string";
      headers["Content-Type"] = yaml ? "application/yaml" : "application/json";
      body = yaml ? request.body : JSON.stringify(request.body);
    }
    const lost = method === "GET" ? "UNAVAILABLE" : "OUTCOME_UNKNOWN";
    const attempts = repeat === "never" ? 1 : this.#options.maxAttempts;
    const backoff = new Backoff();
    for (let attempt = 1, unknown = false; ; attempt++) {
      try {
        return await this.#once(url, { method, headers, body }, lost, options.signal);
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        unknown ||= error.code === "OUTCOME_UNKNOWN";
        if (attempt < attempts && error.retryable && (await backoff.wait(error.retryAfterMs, options.signal))) continue;
        // A temporary failure says nothing about an earlier attempt that may have taken effect.
        if (!unknown || !error.retryable || error.code === "OUTCOME_UNKNOWN") throw error;
        throw new HoldfastError("OUTCOME_UNKNOWN", `an earlier attempt may have taken effect: ${error.detail}`, { cause: error });
      }
    }
  }

  #url(path, query) {
    let url = this.#base;
    for (const part of path) {
      if (typeof part !== "string" || part === "") throw invalid(`names and ids must not be empty, got the path ${JSON.stringify(path)}`);
      url += "/" + (part === "." || part === ".." ? part.replaceAll(".", "%2E") : encodeURIComponent(part));
    }
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value == null || value === "") continue;
      parameters.set(name, value instanceof Date ? value.toISOString() : String(value));
    }
    const text = String(parameters);
    return text === "" ? url : `${url}?${text}`;
  }

  #headers({ ifMatch, ifNoneMatch }) {
    const { apiKey, workspace, userAgent } = this.#options;
    const headers = { Accept: `application/json, ${problemType}`, "User-Agent": userAgent };
    if (apiKey) headers.Authorization = `Bearer ${apiKey}`;
    if (workspace) headers["X-Holdfast-Workspace"] = workspace;
    if (ifMatch != null) headers["If-Match"] = tag(ifMatch);
    if (ifNoneMatch != null) headers["If-None-Match"] = tag(ifNoneMatch);
    return headers;
  }

  /** Sends a request once. */
  async #once(url, init, lost, signal) {
    const cut = linked(signal, this.#options.timeoutMs);
    try {
      const response = await this.#fetch(url, init, lost, cut.signal, signal);
      let text;
      try {
        text = await response.text();
      } catch (cause) {
        signal?.throwIfAborted();
        throw new HoldfastError(lost, "the connection was lost before the response was complete", { cause });
      }
      if (response.status === 304) throw new HoldfastError("NOT_MODIFIED", "the scope still has this version", { status: 304 });
      if (!response.ok) throw refusal(response, text, lost);
      if (response.status === 204) return undefined;
      return decode(response, text, lost);
    } finally {
      cut.release();
    }
  }

  async #fetch(url, init, lost, cut, signal) {
    signal?.throwIfAborted();
    try {
      return await fetch(url, { ...init, redirect: "manual", signal: cut });
    } catch (cause) {
      signal?.throwIfAborted();
      const host = new URL(url).host;
      if (unsentCodes.test(cause?.cause?.code)) throw new HoldfastError("UNAVAILABLE", `the server at ${host} cannot be reached`, { cause });
      throw new HoldfastError(lost, `the server at ${host} cannot be reached, or it closed the connection before it responded`, { cause });
    }
  }

  /** Follows an event stream, and reconnects after the last event that it yielded. */
  async *#follow(path, { after = "", signal }, { query = {}, isLast, isOver } = {}) {
    const url = this.#url(path, query);
    const backoff = new Backoff();
    const state = { connected: false };
    for (let attempt = 1, last; ; attempt++) {
      let failed;
      try {
        for await (const event of this.#events(url, after, state, signal)) {
          if (event.id === after) continue;
          after = event.id;
          last = event.value;
          backoff.reset();
          yield last;
          if (isLast?.(last)) return;
        }
        failed = new HoldfastError("UNAVAILABLE", "the event stream ended");
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        failed = error;
      }
      if (state.connected && (await isOver?.(last))) return;
      if (!failed.retryable || (!state.connected && attempt >= this.#options.maxAttempts)) throw failed;
      if (!(await backoff.wait(failed.retryAfterMs, signal))) throw failed;
    }
  }

  /** Yields the events of one connection. An event without the empty line after it is incomplete. */
  async *#events(url, after, state, signal) {
    const headers = { ...this.#headers({}), Accept: `text/event-stream, ${problemType}` };
    if (after) headers["Last-Event-ID"] = after;
    const cut = linked(signal);
    try {
      cut.within(this.#options.timeoutMs);
      const response = await this.#fetch(url, { headers }, "UNAVAILABLE", cut.signal, signal);
      if (response.status !== 200 || contentType(response) !== "text/event-stream") {
        throw refusal(response, await response.text().catch(() => ""), "UNAVAILABLE");
      }
      state.connected = true;
      let id = "";
      let data = "";
      for await (const line of lines(response.body, cut, signal)) {
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "id") id = value;
        if (name === "data") data += value + "\n";
        if (line !== "") continue;
        if (data !== "") yield { id, value: eventOf(id, data) };
        id = data = "";
      }
    } finally {
      cut.release();
      cut.abort();
    }
  }
}

/** Yields the lines of a body. While the caller processes a line, the time without data does not count. */
async function* lines(body, cut, signal) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (let rest = ""; ; ) {
    let piece;
    try {
      cut.within(silenceMs);
      piece = await reader.read();
      cut.within(0);
    } catch (cause) {
      signal?.throwIfAborted();
      throw new HoldfastError("UNAVAILABLE", "the connection was lost before the response was complete", { cause });
    }
    if (piece.done) return;
    const all = (rest + decoder.decode(piece.value, { stream: true })).split("\n");
    rest = all.pop();
    for (const line of all) yield line.replace(/\r$/, "");
  }
}

function eventOf(id, data) {
  try {
    if (id !== "") return JSON.parse(data);
  } catch {
    // reported below
  }
  throw notHoldfast("UNAVAILABLE", "an event that cannot be decoded");
}

/** No event follows it. */
function ended(event) {
  return event.name === "completed" || event.name === "cancelled";
}

function parse(url) {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

function tag(version) {
  return version === "*" ? version : `"${version}"`;
}

function contentType(response) {
  return (response.headers.get("Content-Type") ?? "").split(";")[0].trim().toLowerCase();
}

function decode(response, text, lost) {
  if (contentType(response) !== "application/json" || text === "") throw foreign(response, text, lost);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw notHoldfast(lost, "an unexpected response", cause);
  }
}

function refusal(response, text, lost) {
  try {
    const problem = contentType(response) === problemType && JSON.parse(text);
    if (problem?.code) return HoldfastError.of(problem, retryAfterMs(response));
  } catch {
    // not an API response
  }
  return foreign(response, text, lost);
}

/** Returns the error for a response that no Holdfast server sends, such as a proxy's page. */
function foreign(response, text, lost) {
  const cause = new Error(`${response.status} ${contentType(response)}: ${text.slice(0, 200)}`);
  return notHoldfast(lost, `status ${response.status}, which is not an API response`, cause, {
    retryable: proxyStatuses.has(response.status),
    retryAfterMs: retryAfterMs(response),
  });
}

function notHoldfast(lost, what, cause, more = { retryable: false }) {
  return new HoldfastError(lost, `the server responded with ${what}: check that the URL belongs to a Holdfast server`, { ...more, cause });
}

/** A date is relative to the response's own Date, so the local clock does not matter. */
function retryAfterMs(response) {
  const text = response.headers.get("Retry-After") ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  return Math.max(0, Date.parse(text) - Date.parse(response.headers.get("Date") ?? "")) || 0;
}

/** The delays between attempts: each up to twice as long as the previous one, with jitter. */
export class Backoff {
  #next = firstPauseMs;

  reset() {
    this.#next = firstPauseMs;
  }

  /** Resolves to false if the server asks for too long. Rejects if the signal is aborted. */
  async wait(atLeastMs = 0, signal) {
    if (atLeastMs > maxRetryAfterMs) return false;
    const ms = this.#next / 2 + (Math.random() * this.#next) / 2 + atLeastMs;
    this.#next = Math.min(2 * this.#next, longestPauseMs);
    await pause(ms, signal);
    signal?.throwIfAborted();
    return true;
  }
}

/** Resolves after a time, or when the signal is aborted. */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}

/** Returns a signal that is aborted with another one, or after a time. */
function linked(signal, ms = 0) {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  let timer;
  const within = (ms) => {
    clearTimeout(timer);
    if (ms > 0) timer = setTimeout(() => controller.abort(new Error(`no response within ${ms} ms`)), ms);
  };
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  within(ms);
  return {
    signal: controller.signal,
    within,
    abort,
    release: () => (within(0), signal?.removeEventListener("abort", abort)),
  };
}
