import { randomUUID } from "node:crypto";
import { Backoff, pause } from "./client.js";
import { HoldfastError, invalid } from "./errors.js";

/** Refuses a step of a lifecycle as invalid; any other task fails without a retry. */
export class Invalid extends Error {}

/** Fails the task: a retry cannot succeed. */
export class NonRetryable extends Error {}

/** Thrown by the call of an effect: the effect did not happen. */
export class NotDone extends Error {}

/** Ends the task without a report: it is not known whether an opaque handler has acted. */
export class OutcomeUnknown extends Error {}

/** Gives the task back until a later time. */
export class Snooze extends Error {
  constructor(delayMs) {
    super(`snoozed for ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

/** A task in execution. */
class Work {
  #client;
  #leaseMs;
  #abort = new AbortController();
  #heldUntil; // on this process's monotonic clock
  #expiry;

  constructor(client, task, leaseMs) {
    this.#client = client;
    this.#leaseMs = leaseMs;
    this.task = task;
    this.lost = false;
    this.#hold(performance.now());
  }

  get signal() {
    return this.#abort.signal;
  }

  async effect(name, call, { ordinal = 0 } = {}) {
    this.signal.throwIfAborted();
    const begun = await this.#persist(() => this.#journal({ name, ordinal }));
    if (begun.state === "done") return begun.result;
    if (performance.now() >= this.#heldUntil) await this.renew();
    if (this.lost) throw this.signal.reason;
    let result;
    try {
      result = (await call(begun.key, this.signal)) ?? null;
    } catch (error) {
      if (error instanceof NotDone) await this.#persist(() => this.#journal({ name, ordinal, notDone: true }));
      throw error;
    }
    await this.#persist(() => this.#journal({ name, ordinal, result }));
    return result;
  }

  async renew() {
    const sent = performance.now();
    const { cancelRequested } = await this.#client.renewTask(this.task.id, { epoch: this.task.epoch, leaseMs: this.#leaseMs });
    this.#hold(sent);
    if (cancelRequested) this.#abort.abort(new HoldfastError("CANCELLED", "the task is to be cancelled: stop working"));
  }

  /** Renews the lease until done is aborted, or the lease is lost. */
  async renewUntil(done) {
    for (; !done.aborted && !this.lost; await pause(this.#leaseMs / 3, done)) {
      try {
        await this.renew();
      } catch (error) {
        if (!error.retryable) this.#lose(error); // otherwise the lease may still be valid
      }
    }
  }

  /** Reports how the task ended. */
  async end(verb, body) {
    await this.#persist(() => this.#client[`${verb}Task`](this.task.id, { epoch: this.task.epoch, ...body }));
  }

  release() {
    clearTimeout(this.#expiry);
  }

  #journal(body) {
    return this.#client.journalTaskEffect(this.task.id, { epoch: this.task.epoch, ...body });
  }

  /** Repeats a call, which the epoch makes safe, as long as the lease lasts. A lost lease ends it after one more call. */
  async #persist(call) {
    for (const backoff = new Backoff(); ; ) {
      try {
        return await call();
      } catch (error) {
        if (error.code === "LEASE_LOST") this.#lose(error);
        if (!error.retryable || this.lost || !(await backoff.wait(error.retryAfterMs))) throw error;
      }
    }
  }

  #hold(since) {
    this.#heldUntil = since + this.#leaseMs;
    clearTimeout(this.#expiry);
    const expired = () => this.#lose(new HoldfastError("LEASE_LOST", "the lease expired, because the server could not be reached: stop working"));
    this.#expiry = setTimeout(expired, Math.max(0, this.#heldUntil - performance.now()));
  }

  #lose(error) {
    this.lost = true;
    this.#abort.abort(error);
  }
}

export class Worker {
  #client;
  #options;
  #stop = new AbortController();
  #running = new Set();

  constructor(client, options) {
    const { name = `worker-${process.pid}`, handlers, probes = {}, undos = {}, concurrency = 4, leaseMs = 30_000, pollMs = 5_000, log = toStderr } = options;
    if (!handlers || Object.keys(handlers).length === 0) throw invalid("a worker needs at least one handler: set handlers");
    if (!Number.isInteger(concurrency) || concurrency < 1) throw invalid(`concurrency must be 1 or more, got ${concurrency}`);
    this.#client = client;
    this.#options = { name, handlers, probes, undos, concurrency, leaseMs, pollMs, log };
  }

  stop() {
    this.#stop.abort();
  }

  async run({ signals = ["SIGTERM", "SIGINT"] } = {}) {
    const stop = () => this.stop();
    for (const signal of signals) process.once(signal, stop);
    try {
      await this.#poll();
      await Promise.all(this.#running);
    } finally {
      for (const signal of signals) process.off(signal, stop);
    }
  }

  /**
   * Claims tasks. A claim without a response is repeated with its key, because its tasks may have been handed out; for the same
   * reason stop does not abort it.
   */
  async #poll() {
    const { name, handlers, concurrency, leaseMs, pollMs, log } = this.#options;
    let claim;
    for (let backoff = new Backoff(); !this.#stop.signal.aborted; ) {
      if (!claim && this.#running.size >= concurrency) {
        await Promise.race(this.#running);
        continue;
      }
      claim ??= {
        body: { worker: name, handlers: Object.keys(handlers), limit: concurrency - this.#running.size, leaseMs, waitMs: pollMs },
        idempotencyKey: randomUUID(),
      };
      try {
        const { tasks } = await this.#client.claimTasks(claim.body, { idempotencyKey: claim.idempotencyKey });
        claim = undefined;
        backoff = new Backoff();
        for (const task of tasks) {
          const work = this.#work(task).finally(() => this.#running.delete(work));
          this.#running.add(work);
        }
      } catch (error) {
        log("claiming tasks failed", { error: String(error) });
        if (!error.retryable) claim = undefined; // it was refused, so no task was handed out
        await backoff.wait(Math.min(error.retryAfterMs ?? 0, 30_000), this.#stop.signal).catch(() => {});
      }
    }
  }

  /** A handler does not get tasks that must not act like it. */
  #handlerOf({ kind, handler }) {
    const from = { probe: "probes", undoItem: "undos" }[kind] ?? "handlers";
    const found = this.#options[from][handler];
    if (!found) throw new NonRetryable(`the worker has no function for tasks of the kind ${kind} of the handler ${handler}: set ${from}`);
    return found;
  }

  async #work(task) {
    const { leaseMs, log } = this.#options;
    const work = new Work(this.#client, task, leaseMs);
    const done = new AbortController();
    let renewal;
    try {
      await work.renew(); // the task counts as received: from here on, a crash is counted
      renewal = pause(leaseMs / 3, done.signal).then(() => work.renewUntil(done.signal));
      const [verb, body] = await outcome(() => this.#handlerOf(task)(task, work));
      if (verb === "leave") log("task ended without a report, because its outcome is unknown", { task: task.id, error: body.message });
      else if (work.lost) log("lease of a task lost", { task: task.id });
      else await work.end(verb, body);
    } catch (error) {
      log("reporting the outcome of a task failed", { task: task.id, error: String(error) }); // it is handed out again after its lease
    } finally {
      done.abort();
      work.release();
      await renewal;
    }
  }
}

/** Runs a function of a handler and returns what to report. */
async function outcome(handler) {
  try {
    return ["complete", (await handler()) ?? {}];
  } catch (error) {
    const message = (error instanceof Error && error.message) || String(error);
    if (error instanceof Snooze) return ["snooze", { delayMs: error.delayMs }];
    if (error instanceof OutcomeUnknown) return ["leave", { message }];
    return ["fail", { message, invalid: error instanceof Invalid, retryable: !(error instanceof Invalid || error instanceof NonRetryable) }];
  }
}

function toStderr(message, attributes) {
  console.error(message, JSON.stringify(attributes));
}
