// A worker for Holdfast in one file, without dependencies. It claims tasks, renews their
// leases while it executes them, journals effects, and reports outcomes. It runs on Node 18
// or later, and uses only erasable syntax, so that newer versions run it without a build.

import { randomUUID } from "node:crypto";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A claimed task. `idempotencyKey` is the same for every attempt. */
export interface Task {
  id: string;
  epoch: number;
  handler: string;
  kind: "action" | "validation" | "afterEffect" | "reaction" | "probe";
  input: any;
  attempt: number;
  until: string;
  idempotencyKey: string;
  context: { stepKey?: string; requester?: string; entity?: Entity; reaction?: string; event?: Event };
}

export interface Entity {
  lifecycle: string;
  id: string;
  status: string;
  version: number;
  data: any;
}

export interface Event {
  stream: string;
  version: number;
  name: string;
  data: any;
  at: string;
}

/** The optional result of a handler: `output` is returned to the caller that fired the step,
* `state` is a merge patch for the data of the entity. */
export interface Outcome {
  output?: Json;
  state?: { [name: string]: Json };
}

export type Handler = (task: Task, work: Work) => Promise<Outcome | void>;

/** The request is invalid: the step is refused and not retried. */
export class Invalid extends Error {}

/** The task failed and must not be retried. */
export class Final extends Error {}

/** An effect is known not to have happened, such as a declined card. */
export class NotDone extends Error {}

/** An error response of the server, with its code. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(`${code}: ${detail}`);
    this.status = status;
    this.code = code;
  }
}

export interface Options {
  url: string;
  key?: string;
  workspace?: string;
  name: string;
  handlers: { [name: string]: Handler };
  leaseMs?: number;
  parallel?: number;
  log?: (message: string, facts: { [name: string]: unknown }) => void;
}

/** A task in execution. `signal` is aborted when the lease is lost: another worker may have the task. */
export class Work {
  readonly task: Task;
  readonly #worker: Worker;
  readonly #lost = new AbortController();

  constructor(task: Task, worker: Worker) {
    this.task = task;
    this.#worker = worker;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Calls an external service as a journaled effect. The intent is committed before the call.
  * The result is stored, and later attempts get it without another call. The service must
  * honor the key if the handler is declared with `onUnknown: "retry"`. */
  async effect<R extends Json>(name: string, call: (key: string, signal: AbortSignal) => Promise<R>, ordinal = 0): Promise<R> {
    const begun = await this.#journal({ name, ordinal });
    if (begun.state === "done") return begun.result as R;
    let result: R;
    try {
      result = await call(begun.key, this.signal);
    } catch (error) {
      if (error instanceof NotDone) await this.#journal({ name, ordinal, notDone: true });
      throw error;
    }
    await this.#journal({ name, ordinal, result });
    return result;
  }

  #journal(body: { [name: string]: Json }): Promise<{ key: string; state: string; result?: Json }> {
    return this.#worker.call(`tasks/${this.task.id}/effects`, { epoch: this.task.epoch, ...body });
  }

  /** Renews the lease until `done` is aborted. */
  async keep(leaseMs: number, done: AbortSignal): Promise<void> {
    // The first renewal confirms that the task has arrived. From then on, crashes of workers are counted.
    do {
      try {
        const renewed = await this.#worker.call<{ cancelRequested?: boolean }>(`tasks/${this.task.id}/renew`, { epoch: this.task.epoch, leaseMs });
        if (!renewed.cancelRequested) continue;
        this.#lost.abort(new Error("the task was cancelled"));
        return;
      } catch (error) {
        if (!(error instanceof Problem)) continue; // no response: the lease may still be valid
        this.#lost.abort(error);
        return;
      }
    } while (await pause(leaseMs / 3, done));
  }
}

/** Claims and executes tasks until it is stopped. */
export class Worker {
  readonly #options: Options;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Stops claiming tasks. run() returns when the tasks in execution have ended. */
  stop(): void {
    this.#stop.abort();
  }

  async run(): Promise<void> {
    const o = this.#options;
    const parallel = o.parallel ?? 4;
    const leaseMs = o.leaseMs ?? 30_000;
    let claim: { body: object; key: string } | undefined; // a request without a response so far
    for (let failures = 0; claim || !this.#stop.signal.aborted; ) {
      if (!claim && this.#running.size >= parallel) {
        await Promise.race(this.#running);
        continue;
      }
      try {
        // stop() does not abort this request, because the leases of the returned tasks would have to
        // expire. If the response was lost, a request with the same key returns the same tasks.
        claim ??= {
          body: { worker: o.name, handlers: Object.keys(o.handlers), limit: parallel - this.#running.size, leaseMs, waitMs: 5_000 },
          key: randomUUID(),
        };
        const { tasks } = await this.#once<{ tasks: Task[] }>("tasks/claim", claim.body, claim.key);
        claim = undefined;
        failures = 0;
        for (const task of tasks) {
          const work = this.#work(task, leaseMs).finally(() => this.#running.delete(work));
          this.#running.add(work);
        }
      } catch (error) {
        if (this.#stop.signal.aborted) break;
        if (error instanceof Problem && error.status < 500 && error.status !== 429) claim = undefined; // refused: no task was claimed
        o.log?.("claiming tasks failed", { error: String(error) });
        await pause(Math.min(30_000, 250 * 2 ** failures++) * (0.5 + Math.random() / 2), this.#stop.signal);
      }
    }
    await Promise.all(this.#running);
  }

  async #work(task: Task, leaseMs: number): Promise<void> {
    const work = new Work(task, this);
    const done = new AbortController();
    const renewal = work.keep(leaseMs, done.signal);
    try {
      let path = "complete";
      let body: { [name: string]: Json };
      try {
        const outcome = (await this.#options.handlers[task.handler](task, work)) ?? {};
        body = { epoch: task.epoch, ...outcome } as typeof body;
      } catch (error) {
        path = "fail";
        const message = (error instanceof Error && error.message) || String(error);
        body = { epoch: task.epoch, message, invalid: error instanceof Invalid, retryable: !(error instanceof Final || error instanceof Invalid) };
      }
      if (!work.signal.aborted) await this.call(`tasks/${task.id}/${path}`, body);
    } catch (error) { // the lease expires, and the task is claimed again
    this.#options.log?.("reporting the outcome of a task failed", { task: task.id, error: String(error) });
    } finally {
      done.abort();
      await renewal;
    }
  }

  /** Calls the API, and retries if there is no response: calls that settle or renew a task, or
  * journal an effect, are idempotent. */
  async call<R>(path: string, body: object): Promise<R> {
    for (let failures = 0; ; failures++) {
      try {
        return await this.#once<R>(path, body);
      } catch (error) {
        const permanent = error instanceof Problem && error.status < 500 && error.status !== 429;
        if (permanent || failures >= 6) throw error;
      }
      await pause(100 * 2 ** failures * (0.5 + Math.random() / 2));
    }
  }

  async #once<R>(path: string, body: object, key?: string): Promise<R> {
    const o = this.#options;
    const headers: { [name: string]: string } = { "Content-Type": "application/json" };
    if (o.key) headers["Authorization"] = `Bearer ${o.key}`;
    if (o.workspace) headers["X-Holdfast-Workspace"] = o.workspace;
    if (key) headers["Idempotency-Key"] = key;
    const response = await fetch(`${o.url}/api/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(60_000) });
    const data: any = await response.json().catch(() => ({}));
    if (!response.ok) throw new Problem(response.status, data.code ?? "", data.detail ?? response.statusText);
    return data as R;
  }
}

/** Waits. It resolves to false if `stop` is aborted first. */
function pause(ms: number, stop?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (stop?.aborted) return resolve(false);
    const stopped = () => (clearTimeout(timer), resolve(false));
    const timer = setTimeout(() => (stop?.removeEventListener("abort", stopped), resolve(true)), ms);
    stop?.addEventListener("abort", stopped, { once: true });
  });
}
