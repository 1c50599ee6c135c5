// Reads that keep themselves up to date.
import { type Signal, batch, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { get, type Options, Refused } from "./api";
import { type Watched, watch } from "./live";

/** What a read knows. A failed read keeps the last value beside its error, and never looks like an empty list. */
export interface Read<T> {
  value: Signal<T | undefined>;
  error: Signal<Refused | undefined>;
  loading: Signal<boolean>;
  /** When the value was read, in this browser's time. */
  at: Signal<number>;
  reload: () => void;
  /** Takes a value that the stream has sent. A read in flight is dropped, because its response may be older. */
  set: (value: T) => void;
}

/** How a page follows what it shows: topics of GET live, and whether a change concerns it. */
export interface Follow {
  topics?: string[];
  /** Reports whether the value must be read again. Without it every message about the topics does. */
  when?: (m: Watched) => boolean;
}

/** Reads that began before the page that shows them: with the value, once it is here. */
const early = new Map<string, { sent: Promise<unknown>; value?: unknown }>();

/** readEarly reads what the first page shows before it is drawn, so that it is drawn once. useGet takes the value, or waits for it. */
export function readEarly(path: string, o: Options): Promise<unknown> {
  const r: { sent: Promise<unknown>; value?: unknown } = { sent: get(path, o) };
  early.set(path, r);
  return r.sent.then(v => (r.value = v), e => { early.delete(path); throw e; });
}

/**
 * useGet reads a path, and reads it again when what it follows changes, but at most once a second. A path that is null
 * reads nothing.
 */
export function useGet<T>(path: string | null, follow: Follow = {}): Read<T> {
  const read = useMemo(() => {
    const known = path !== null ? early.get(path)?.value as T | undefined : undefined;
    const value = signal<T | undefined>(known), error = signal<Refused | undefined>(undefined), loading = signal(false), at = signal(known === undefined ? 0 : Date.now());
    let abort: AbortController | undefined, again = false, timer = 0, last = 0;
    const r = {
      value, error, loading, at, path: known === undefined ? null : path,
      open(path: string | null) {
        const first = path !== null ? early.get(path) : undefined;
        if (path !== null) early.delete(path);
        if (first && path === r.path) return;
        abort?.abort();
        clearTimeout(timer);
        timer = 0; again = false;
        if (path !== r.path) batch(() => { value.value = undefined; error.value = undefined; });
        r.path = path;
        loading.value = false;
        if (path !== null) void r.load(first?.sent as Promise<T> | undefined);
      },
      async load(sent?: Promise<T>) {
        if (r.path === null) return;
        if (loading.peek()) { again = true; return; }
        const mine = (abort = new AbortController());
        loading.value = true;
        last = Date.now();
        try {
          const v = await (sent ?? get<T>(r.path, { signal: mine.signal }));
          if (mine.signal.aborted) return;
          batch(() => { value.value = v; error.value = undefined; at.value = Date.now(); });
        } catch (e) {
          if (mine.signal.aborted) return;
          error.value = e instanceof Refused ? e : new Refused("INTERNAL", String(e), 0, "");
        }
        if (mine !== abort) return;
        loading.value = false;
        if (again) { again = false; r.soon(); }
      },
      reload: () => void r.load(),
      set(v: T) {
        abort?.abort();
        clearTimeout(timer);
        timer = 0; again = false;
        batch(() => { loading.value = false; value.value = v; error.value = undefined; at.value = Date.now(); });
      },
      /** soon reads again within a second. */
      soon() {
        if (timer || r.path === null) return;
        timer = window.setTimeout(() => { timer = 0; void r.load(); }, Math.max(60, last + 1000 - Date.now()));
      },
      close() { abort?.abort(); clearTimeout(timer); },
    };
    return r;
  }, []);
  useLayoutEffect(() => { read.open(path); return () => read.close(); }, [path]); // not after the next frame: the request takes longer than drawing
  useFollow(follow, () => read.soon());
  return read;
}

/** useFollow calls f for each message about the topics. */
export function useFollow(follow: Follow, f: (m: Watched) => void): void {
  const topics = follow.topics?.join(",") ?? "";
  const now = useRef({ follow, f });
  now.current = { follow, f }; // a message is judged by the last render, not by the first
  useEffect(() => {
    if (!topics) return;
    return watch(topics.split(","), m => { const { follow, f } = now.current; if (m.reset || !follow.when || follow.when(m)) f(m); });
  }, [topics]);
}

interface Page<T> { items: T[]; next: string | null }

/** A list that grows page by page, in both memory and view bounded. */
export interface Rows<T> extends Omit<Read<T[]>, "value" | "set"> {
  value: Signal<T[] | undefined>;
  /** Whether there are rows after the last that was read. */
  more: Signal<boolean>;
  loadMore: () => void;
  /** How many rows were dropped at the start, because the list keeps at most 2,000. */
  dropped: Signal<number>;
}

const pageSize = 100, kept = 2000;

/** usePages reads a list. A change of what it follows reads the first page again, if the list is at its beginning; else it says so by stale. */
export function usePages<T>(path: string | null, follow: Follow = {}): Rows<T> & { stale: Signal<boolean>; set: (value: T[]) => void } {
  const read = useMemo(() => {
    const value = signal<T[] | undefined>(undefined), error = signal<Refused | undefined>(undefined), loading = signal(false), at = signal(0);
    const more = signal(false), stale = signal(false), dropped = signal(0);
    let next: string | null = null, abort: AbortController | undefined, timer = 0, last = 0, again = false, pages = 0;
    const r = {
      value, error, loading, at, more, stale, dropped, path: null as string | null,
      open(path: string | null) {
        abort?.abort();
        clearTimeout(timer); timer = 0; again = false;
        if (path !== r.path) batch(() => { value.value = undefined; error.value = undefined; more.value = false; });
        r.path = path; loading.value = false; pages = 0;
        if (path !== null) void r.load(true);
      },
      async load(first: boolean) {
        if (r.path === null) return;
        if (loading.peek()) { again ||= first; return; }
        const mine = (abort = new AbortController());
        loading.value = true;
        last = Date.now();
        const join = r.path.includes("?") ? "&" : "?";
        try {
          const page = await get<Page<T>>(`${r.path}${join}limit=${pageSize}${first || !next ? "" : "&cursor=" + encodeURIComponent(next)}`, { signal: mine.signal });
          if (mine.signal.aborted) return;
          batch(() => {
            let all = first ? page.items : [...(value.peek() ?? []), ...page.items];
            pages = first ? 1 : pages + 1;
            if (first) dropped.value = 0;
            if (all.length > kept) { dropped.value += all.length - kept; all = all.slice(-kept); }
            value.value = all;
            next = page.next; more.value = next !== null; error.value = undefined; at.value = Date.now();
            if (first) stale.value = false;
          });
        } catch (e) {
          if (mine.signal.aborted) return;
          error.value = e instanceof Refused ? e : new Refused("INTERNAL", String(e), 0, "");
        }
        if (mine !== abort) return;
        loading.value = false;
        if (again) { again = false; r.soon(); }
      },
      reload: () => void r.load(true),
      loadMore: () => { if (next !== null && !error.peek()) void r.load(false); },
      set(v: T[]) {
        abort?.abort();
        clearTimeout(timer);
        timer = 0; again = false; next = null;
        batch(() => { loading.value = more.value = stale.value = false; dropped.value = 0; value.value = v; error.value = undefined; at.value = Date.now(); });
      },
      soon() {
        if (r.path === null) return;
        if (pages > 1) { stale.value = true; return; } // the reader has scrolled: do not move the rows
        if (timer) return;
        timer = window.setTimeout(() => { timer = 0; void r.load(true); }, Math.max(60, last + 1000 - Date.now()));
      },
      close() { abort?.abort(); clearTimeout(timer); },
    };
    return r;
  }, []);
  useLayoutEffect(() => { read.open(path); return () => read.close(); }, [path]); // not after the next frame: the request takes longer than drawing
  useFollow(follow, () => read.soon());
  return read;
}
