import { Api, Event, Live, Scope } from "./api.js";

export interface ClientOptions {
  /** API key (hf_…). The default is none. */
  apiKey?: string;
  /** Workspace on a server without API keys. With an API key, the key determines the workspace. */
  workspace?: string;
  /** Maximum number of attempts of a call. The default is 6, over about 3 seconds. */
  maxAttempts?: number;
  /** How long an attempt waits for its response. The default is 90 seconds. */
  timeoutMs?: number;
  userAgent?: string;
}

export interface CallOptions {
  /** Ends the call. The outcome of a call that changes something is then unknown. */
  signal?: AbortSignal;
}

export interface KeyOptions extends CallOptions {
  /**
   * The call takes effect once per key, no matter how often it is sent, for a day. The default is a new key for each call, which its
   * retries share. Give a key of your own if your program may repeat the call, for example after it was restarted.
   */
  idempotencyKey?: string;
}

/** Conditions on the version of a scope. */
export interface Conditions {
  /** The call requires this version or, with "*", that the scope exists. */
  ifMatch?: number | "*";
  /** A change with "*" requires that the scope does not exist. A read of this version fails with the code NOT_MODIFIED. */
  ifNoneMatch?: number | "*";
}

export interface FollowOptions extends CallOptions {
  /** Begins after this event: its position in the feed, or the cursor of a message. */
  after?: string;
}

/**
 * A client for the HTTP API of one server. Calls are retried after temporary failures: a call that changes something has an
 * idempotency key, so it takes effect once. Lists are async iterators that read page after page; the methods named …Page read one.
 */
export class Client extends Api {
  constructor(url?: string, options?: ClientOptions);

  /**
   * Yields each event of the feed after a position (the default is the beginning), then each new event, once and in order. It
   * reconnects after the last event, until the loop ends, the signal is aborted or the server refuses.
   */
  followFeed(options?: FollowOptions): AsyncGenerator<Event, void, undefined>;
  /** Yields the histories and events of the workspace from now on. Events from before a broken connection may be repeated. */
  followActivity(options?: FollowOptions): AsyncGenerator<Event, void, undefined>;
  /** Yields what changes in topics, such as "inbox" or "lifecycle:invoice". The first message has no changes. */
  followLive(topics: string[], options?: FollowOptions): AsyncGenerator<Live, void, undefined>;
  /** Yields the events of a batch up to its end. */
  followBatch(id: string, options?: FollowOptions): AsyncGenerator<Event, void, undefined>;
  /** Yields the events of a run up to its end. */
  followRun(id: string, options?: FollowOptions): AsyncGenerator<Event, void, undefined>;
  /** Yields the current state of a scope, then its state after each change. A scope that does not exist has version -1. */
  watchScope(kind: string, id: string, options?: FollowOptions): AsyncGenerator<Scope, void, undefined>;
}
