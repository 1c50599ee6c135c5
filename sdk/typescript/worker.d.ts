import { Task } from "./api.js";
import { Client } from "./client.js";

/** Refuses a step of a lifecycle as invalid; any other task fails without a retry. */
export class Invalid extends Error {}
/** Fails the task: a retry cannot succeed. Any other error of a handler is a failure that may be retried. */
export class NonRetryable extends Error {}
/** Thrown by the call of an effect: the effect did not happen, for example because the card was declined. */
export class NotDone extends Error {}
/** Ends the task without a report: it is not known whether an opaque handler has acted. After the lease, onUnknown of the handler decides. */
export class OutcomeUnknown extends Error {}
/** Gives the task back until a later time, up to 30 days. A step of a lifecycle cannot be given back. */
export class Snooze extends Error {
  constructor(delayMs: number);
  readonly delayMs: number;
}

/** A task in execution. */
export interface Work {
  readonly task: Task;
  /** Whether the lease was lost: nothing is reported. */
  readonly lost: boolean;
  /** Aborted if the lease is lost, because another worker may have the task, or if the task is to be cancelled: stop working. */
  readonly signal: AbortSignal;
  /**
   * Calls another system as a journaled effect: the intent is stored before the call, and the result after it. A later attempt gets
   * the stored result without another call. The other system must honor the key if the handler's onUnknown is "retry". If the call
   * throws an error other than NotDone, the outcome of the effect is unknown, and onUnknown decides. ordinal distinguishes effects
   * with the same name.
   */
  effect<R>(name: string, call: (key: string, signal: AbortSignal) => Promise<R> | R, options?: { ordinal?: number }): Promise<R>;
  /** Renews the lease. The worker does so regularly by itself. */
  renew(): Promise<void>;
}

/** What a handler returns: output is the result of the task, state a merge patch for the data of the entity or the state of the run. */
export interface Outcome {
  output?: any;
  state?: Record<string, any>;
}

export type HandlerFunction = (task: Task, work: Work) => Promise<Outcome | void> | Outcome | void;

export interface WorkerOptions {
  /** Name of the worker in leases and logs. The default contains the process id. */
  name?: string;
  /** The functions that execute tasks, by the names of the handlers. */
  handlers: Record<string, HandlerFunction>;
  /**
   * The functions that find out whether an opaque handler with onUnknown "probe" has acted. They return { output: { happened, result } },
   * and state as the handler would.
   */
  probes?: Record<string, HandlerFunction>;
  /** The functions that undo items of batches, by the names of the handlers. */
  undos?: Record<string, HandlerFunction>;
  /** Maximum number of tasks at a time. The default is 4. */
  concurrency?: number;
  /** How long a lease lasts without renewal. The default is 30 seconds; it is renewed after a third of that. */
  leaseMs?: number;
  /** How long a claim waits for a task, and stop for a claim. The default is 5 seconds. */
  pollMs?: number;
  /** Receives problems. The default writes them to stderr. */
  log?: (message: string, attributes: Record<string, unknown>) => void;
}

/** Claims tasks of handlers and executes them. */
export class Worker {
  constructor(client: Client, options: WorkerOptions);
  /** Works until stop is called or the process receives one of the signals; running tasks end first. */
  run(options?: { signals?: string[] }): Promise<void>;
  /** Stops claiming tasks. */
  stop(): void;
}
