// One stream of server-sent events for all tabs of a browser. The tab that holds a lock reads the stream and sends each
// message to the others; HTTP/1.1 allows a browser six connections per origin, so a stream per tab would block the pages.
// A hidden tab wants nothing: while all tabs are hidden there is no stream.
//
// Each tab announces the topics that it shows. The reader asks for all of them, and continues after the last message
// (its cursor) when they change, when the connection breaks, or when another tab takes over.
import { effect, signal } from "@preact/signals";
import type { Live, LiveChange, LiveState, LiveSubject } from "../api.gen";
import { loadSession, session } from "./api";

/** What a watcher is told. */
export interface Watched {
  changes: LiveChange[];
  folded: LiveSubject[];
  /** More has changed than the message says: read everything again. */
  reset: boolean;
  state?: LiveState;
}

/** The state of the stream: when its last message came, in this browser's time, and whether it is connected. */
export const connected = signal<"off" | "connecting" | "on" | "lost">("off");
export const heardAt = signal(0);
/** How long before its last message the server had read the database, in ms. */
export const lag = signal(0);

interface Watcher { topics: string[]; f: (m: Watched) => void }
const watchers = new Set<Watcher>();

/** watch calls f for messages about topics, until the returned function is called. f gets messages of other topics too, and must look. */
export function watch(topics: string[], f: (m: Watched) => void): () => void {
  const w = { topics, f };
  watchers.add(w);
  announce();
  return () => { watchers.delete(w); announce(); };
}

/** topic names an object to watch, such as topic("run", id): a comma or a percent sign within a name is encoded. */
export const topic = (kind: string, name: string) => kind + ":" + name.replaceAll("%", "%25").replaceAll(",", "%2C");

/** about returns whether a message is about objects of a kind, or about one of them. */
export const about = (kind: LiveChange["kind"], subject?: string) => (m: Watched): boolean =>
  m.reset || m.changes.some(c => c.kind === kind && (subject === undefined || c.subject === subject)) || m.folded.some(c => c.kind === kind && (subject === undefined || c.subject === subject));

const tab = Math.random().toString(36).slice(2);
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("holdfast-live") : null;

type Note =
  | { kind: "want"; tab: string; topics: string[] } // what a tab shows; [] if it is hidden or closed
  | { kind: "ask" } // a new reader asks all tabs what they show
  | { kind: "message"; live: Live }
  | { kind: "opened"; topics: string[]; reset: boolean } // the stream now has these topics
  | { kind: "session" } // somebody has logged in or out
  | { kind: "connection"; state: "on" | "lost" | "connecting"; at: number };

const wants = new Map<string, string[]>();
let cursor = "", announced = "", announceTimer = 0;
/** The last state of each kind: a watcher that comes later gets it at once, because the stream sends a state only when it changes. */
let states: LiveState = {};

/** The topics of the open stream. A watcher of another topic may have missed changes, and is told to read again. */
let covered = new Set<string>();

function opened(topics: string[], reset: boolean): void {
  const before = covered;
  covered = new Set(topics);
  if (document.hidden) return;
  for (const w of [...watchers]) if (reset || w.topics.some(t => !before.has(t))) w.f(readAgain());
}

const readAgain = (): Watched => ({ changes: [], folded: [], reset: true });

const mine = () => (document.hidden || !session.value ? [] : [...new Set([...watchers].flatMap(w => w.topics))].sort());

function announce(): void {
  clearTimeout(announceTimer);
  announceTimer = window.setTimeout(() => {
    const topics = mine(), text = topics.join(",");
    if (text === announced) return;
    announced = text;
    wants.set(tab, topics);
    channel?.postMessage({ kind: "want", tab, topics } satisfies Note);
    lead();
    reader?.change();
  }, 20);
}

addEventListener("visibilitychange", () => {
  announce();
  if (!document.hidden) for (const w of [...watchers]) w.f(readAgain()); // a hidden tab is told nothing
});
addEventListener("pagehide", () => channel?.postMessage({ kind: "want", tab, topics: [] } satisfies Note));
let workspace = "";
effect(() => {
  const s = session.value, now = s ? s.workspace + "/" + (s.key?.id ?? "") : "";
  if (s !== null && now !== workspace) {
    if (workspace) channel?.postMessage({ kind: "session" } satisfies Note);
    workspace = now; cursor = ""; states = {}; covered = new Set(); // of another workspace
  }
  announce();
});

channel?.addEventListener("message", e => {
  const n = e.data as Note;
  switch (n.kind) {
    case "want":
      n.topics.length ? wants.set(n.tab, n.topics) : wants.delete(n.tab);
      reader?.change();
      break;
    case "ask":
      channel.postMessage({ kind: "want", tab, topics: mine() } satisfies Note);
      break;
    case "message":
      deliver(n.live);
      break;
    case "opened":
      opened(n.topics, n.reset);
      break;
    case "session":
      void loadSession().catch(() => undefined);
      break;
    case "connection":
      connected.value = n.state;
      if (n.state === "on") heardAt.value = n.at;
  }
});

function deliver(live: Live): void {
  cursor = live.cursor;
  heardAt.value = Date.now();
  connected.value = "on";
  lag.value = live.lagMs;
  if (live.state) states = { ...states, ...live.state, counts: { ...states.counts, ...live.state.counts }, wallets: { ...states.wallets, ...live.state.wallets } };
  const m: Watched = { changes: live.changes ?? [], folded: live.folded ?? [], reset: live.reset, state: live.state };
  if (document.hidden) return;
  for (const w of [...watchers]) w.f(m);
}

/** A tab that shows something competes for the lock; the holder reads the stream. */
let asking = false;
let reader: Reader | null = null;

function lead(): void {
  if (mine().length === 0) { reader?.stop(); return; }
  if (asking || reader) return;
  asking = true;
  const read = async () => {
    asking = false;
    if (mine().length === 0) return;
    reader = new Reader();
    await reader.ended;
    reader = null;
  };
  // Without locks (plain HTTP on a name that is not localhost) each tab reads for itself.
  if (navigator.locks) void navigator.locks.request("holdfast-live", read).then(announceAgain);
  else void read().then(announceAgain);
}

/** After the lock was given up, the tab may want it again. */
function announceAgain(): void { asking = false; if (mine().length) lead(); }

class Reader {
  readonly ended: Promise<void>;
  private end!: () => void;
  private source: EventSource | null = null;
  private asked = "";
  private timer = 0;
  private silence = 0;
  private failures = 0;
  private reset = false; // changes were missed: all tabs must read again

  constructor() {
    this.ended = new Promise(done => (this.end = done));
    channel?.postMessage({ kind: "ask" } satisfies Note);
    this.change();
  }

  private topics(): string {
    wants.set(tab, mine());
    return [...new Set([...wants.values()].flat())].sort().join(",");
  }

  /** change opens the stream again if the topics have changed. */
  change(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      const topics = this.topics();
      if (topics && topics !== this.asked) this.open(topics);
    }, this.source ? 100 : 0);
  }

  private open(topics: string): void {
    this.source?.close();
    this.asked = topics;
    this.say("connecting");
    const s = (this.source = new EventSource("/api/v1/live?watch=" + encodeURIComponent(topics) + (cursor ? "&since=" + encodeURIComponent(cursor) : "")));
    const got = (e: MessageEvent) => {
      this.failures = 0;
      const live = JSON.parse(e.data) as Live;
      channel?.postMessage({ kind: "message", live } satisfies Note);
      deliver(live);
    };
    s.addEventListener("changes", got);
    s.addEventListener("state", got);
    s.onopen = () => {
      this.say("on");
      const all = topics.split(","), reset = this.reset;
      this.reset = false;
      channel?.postMessage({ kind: "opened", topics: all, reset } satisfies Note);
      opened(all, reset);
    };
    s.onerror = () => {
      // EventSource would repeat the first cursor; a new one continues after the last message.
      if (this.source !== s) return;
      s.close();
      this.failures++;
      this.say("lost");
      void loadSession().catch(() => undefined); // the session may have ended: then the page asks for a key
      if (this.failures > 2) { cursor = ""; this.reset = true; } // a cursor that is refused must not be sent for ever
      clearTimeout(this.silence);
      this.silence = window.setTimeout(() => {
        this.open(this.topics() || topics);
      }, Math.min(5000, 250 * 2 ** this.failures));
    };
  }

  private say(state: "on" | "lost" | "connecting"): void {
    connected.value = state;
    if (state === "on") heardAt.value = Date.now();
    channel?.postMessage({ kind: "connection", state, at: Date.now() } satisfies Note);
  }

  /** stop closes the stream and gives the lock to another tab. */
  stop(): void {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.source?.close();
    this.source = null;
    connected.value = "off";
    this.end();
  }
}

/** lastState returns the last state that the stream sent. */
export const lastState = () => states;
