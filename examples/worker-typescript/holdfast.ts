// A worker for Holdfast in one file and without dependencies: it asks for tasks, keeps
// their holds while it works on them, journals effects, and says how they ended.
// Node 18 or later; it uses only what can be erased, so that a Node that runs TypeScript
// runs it as it is.

import { randomUUID } from "node:crypto";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** What there is to do. `idempotencyKey` is the same for every attempt. */
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

/** What a handler returns: `output` is told to who fired the step, `state` is a merge
 * patch of the entity's data. Nothing at all is as good. */
export interface Outcome {
  output?: Json;
  state?: { [name: string]: Json };
}

export type Handler = (task: Task, work: Work) => Promise<Outcome | void>;

/** The request itself is wrong: the step is refused, and another attempt would not help. */
export class Invalid extends Error {}

/** Another attempt would not help. */
export class Final extends Error {}

/** An effect did not happen, and is known not to have: a card that was declined. */
export class NotDone extends Error {}

/** A refusal of the server's, with its code. */
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

/** A task in hand. `signal` is aborted when the hold is lost: another may have it. */
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

  /** Does something to the world outside so that it is never done twice by guess. The
   * intent is committed before the call; a result is kept, and given to every later
   * attempt in place of another call. Whoever is called must honour the key, if the
   * handler is declared with `onUnknown: "retry"`. */
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

  /** Keeps the hold until the work is over. */
  async keep(leaseMs: number, over: AbortSignal): Promise<void> {
    // The first renewal says that the task has arrived: from then on, a worker that dies of it is counted.
    do {
      try {
        const renewed = await this.#worker.call<{ cancelRequested?: boolean }>(`tasks/${this.task.id}/renew`, { epoch: this.task.epoch, leaseMs });
        if (!renewed.cancelRequested) continue;
        this.#lost.abort(new Error("it is cancelled"));
        return;
      } catch (error) {
        if (!(error instanceof Problem)) continue; // it is not heard: the hold may last
        this.#lost.abort(error);
        return;
      }
    } while (await pause(leaseMs / 3, over));
  }
}

/** Asks for tasks until it is stopped. */
export class Worker {
  readonly #options: Options;
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Takes nothing more; run() ends when what is in hand has ended. */
  stop(): void {
    this.#stop.abort();
  }

  async run(): Promise<void> {
    const o = this.#options;
    const parallel = o.parallel ?? 4;
    const leaseMs = o.leaseMs ?? 30_000;
    let claim: { ask: object; key: string } | undefined; // one whose answer is not known
    for (let failures = 0; claim || !this.#stop.signal.aborted; ) {
      if (!claim && this.#running.size >= parallel) {
        await Promise.race(this.#running);
        continue;
      }
      try {
        // It is not broken off by stop(): what the server has given out would run out. Under the same
        // key it is given the same tasks, where the answer was lost.
        claim ??= {
          ask: { worker: o.name, handlers: Object.keys(o.handlers), limit: parallel - this.#running.size, leaseMs, waitMs: 5_000 },
          key: randomUUID(),
        };
        const { tasks } = await this.#once<{ tasks: Task[] }>("tasks/claim", claim.ask, claim.key);
        claim = undefined;
        failures = 0;
        for (const task of tasks) {
          const work = this.#work(task, leaseMs).finally(() => this.#running.delete(work));
          this.#running.add(work);
        }
      } catch (error) {
        if (this.#stop.signal.aborted) break;
        if (error instanceof Problem && error.status < 500 && error.status !== 429) claim = undefined; // refused: nothing was given out
        o.log?.("asking for tasks failed", { error: String(error) });
        await pause(Math.min(30_000, 250 * 2 ** failures++) * (0.5 + Math.random() / 2), this.#stop.signal);
      }
    }
    await Promise.all(this.#running);
  }

  async #work(task: Task, leaseMs: number): Promise<void> {
    const work = new Work(task, this);
    const over = new AbortController();
    const kept = work.keep(leaseMs, over.signal);
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
    } catch (error) { // it runs out, and is taken up again
      this.#options.log?.("a task is not ended", { task: task.id, error: String(error) });
    } finally {
      over.abort();
      await kept;
    }
  }

  /** Calls the API, and again where no answer is heard: what ends or renews a task, or
   * journals an effect, comes to the same when it is said again. */
  async call<R>(path: string, body: object): Promise<R> {
    for (let failures = 0; ; failures++) {
      try {
        return await this.#once<R>(path, body);
      } catch (error) {
        const hopeless = error instanceof Problem && error.status < 500 && error.status !== 429;
        if (hopeless || failures >= 6) throw error;
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
    const answer: any = await response.json().catch(() => ({}));
    if (!response.ok) throw new Problem(response.status, answer.code ?? "", answer.detail ?? response.statusText);
    return answer as R;
  }
}

/** Waits, and says whether that was to the end. */
function pause(ms: number, stop?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (stop?.aborted) return resolve(false);
    const stopped = () => (clearTimeout(timer), resolve(false));
    const timer = setTimeout(() => (stop?.removeEventListener("abort", stopped), resolve(true)), ms);
    stop?.addEventListener("abort", stopped, { once: true });
  });
}
