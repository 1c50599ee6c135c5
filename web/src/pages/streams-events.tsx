// The events of all streams, newest first. New ones appear at the top; what is read stays where it is.
import { batch, signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Event } from "../api.gen";
import { get, query, Refused } from "../core/api";
import { type Rows, useFollow } from "../core/data";
import { clockTime, number } from "../core/format";
import { useKeys } from "../core/keyboard";
import { zone } from "../core/prefs";
import { params, segments, setParams, to } from "../core/router";
import { Button, Empty, Id, Loading, Time } from "../ui/basic";
import { Search } from "../ui/filter";
import { Split, Table } from "../ui/table";

/** eventPath is the address of an event: that of its stream with its version. */
export const eventPath = (e: { stream: string; version: number }) => to.stream(e.stream) + "/" + e.version;
export const eventKey = (e: { stream: string; version: number }) => e.stream + "/" + e.version;

/** topicOf returns the topic of GET live that has the events of a stream or a history. */
export function topicOf(stream: string): string {
  const known = /^\$(run|batch|(?:entity|scope)(?=\/[^/]+\/.))\/(.+)$/.exec(stream), reaction = /^\$reaction\/([^/]+)/.exec(stream);
  const topic = known ? known[1] + ":" + known[2] : reaction ? "reaction:" + reaction[1] : "stream:" + stream;
  return topic.replaceAll("%", "%25").replaceAll(",", "%2C");
}

const pageSize = 100, kept = 2000;

/** useTail reads a search of events, newest first, and puts new events before those that it has. */
function useTail(path: string, topics: string[], paused: boolean): Rows<Event> & { added: () => number; waiting: ReturnType<typeof signal<boolean>> } {
  const tail = useMemo(() => {
    const value = signal<Event[] | undefined>(undefined), error = signal<Refused | undefined>(undefined), loading = signal(false), at = signal(0), more = signal(false), dropped = signal(0), waiting = signal<boolean>(false);
    let here = "", next: string | null = null, added = 0, abort = new AbortController(), timer = 0, last = 0, again = false;
    const t = {
      value, error, loading, at, more, dropped, waiting, paused: false,
      /** How many rows the last change has put before the others. */
      added: () => { const n = added; added = 0; return n; },
      open(path: string) {
        abort.abort(); clearTimeout(timer); timer = 0; again = false; abort = new AbortController(); here = path; next = null;
        batch(() => { value.value = undefined; error.value = undefined; more.value = false; loading.value = false; waiting.value = false; });
        void t.read(false);
      },
      async read(older: boolean) {
        if (loading.peek()) { again ||= !older; return; }
        const mine = abort;
        loading.value = true; last = Date.now();
        try {
          const page = await get<{ items: Event[]; next: string | null }>(`${here}&limit=${pageSize}` + (older && next ? "&cursor=" + encodeURIComponent(next) : ""), { signal: mine.signal });
          if (mine.signal.aborted) return;
          batch(() => { older ? t.append(page) : t.prepend(page); error.value = undefined; at.value = Date.now(); });
        } catch (e) {
          if (mine.signal.aborted) return;
          error.value = e instanceof Refused ? e : new Refused("INTERNAL", String(e), 0, "");
        }
        loading.value = false;
        if (again) { again = false; t.soon(); }
      },
      append(page: { items: Event[]; next: string | null }) {
        value.value = [...(value.peek() ?? []), ...page.items];
        next = value.value.length < kept ? page.next : null;
        more.value = next !== null;
      },
      prepend(page: { items: Event[]; next: string | null }) {
        const old = value.peek(), first = old?.[0] && eventKey(old[0]);
        const n = first === undefined ? -1 : page.items.findIndex(e => eventKey(e) === first);
        waiting.value = false;
        if (n === 0) return;
        if (n < 0) { value.value = page.items; next = page.next; more.value = next !== null; return; } // more is new than a page has
        added += n;
        value.value = [...page.items.slice(0, n), ...old!].slice(0, kept);
      },
      loadMore: () => { if (next !== null && !error.peek()) void t.read(true); },
      reload: () => { error.value = undefined; void t.read(value.peek() !== undefined && next !== null && value.peek()!.length === 0); },
      soon() {
        if (t.paused) { waiting.value = true; return; }
        if (!timer) timer = window.setTimeout(() => { timer = 0; void t.read(false); }, Math.max(60, last + 1000 - Date.now()));
      },
      close() { abort.abort(); clearTimeout(timer); },
    };
    return t;
  }, []);
  tail.paused = paused;
  useEffect(() => { tail.open(path); return tail.close; }, [path]);
  useEffect(() => { if (!paused && tail.waiting.peek()) tail.soon(); }, [paused]);
  useFollow({ topics }, () => tail.soon());
  return tail as any;
}

/** timeOf reads a time of the address, which has the zone that the page shows. */
const timeOf = (text: string | null) => { if (!text) return undefined; const t = new Date(text + (zone.value === "utc" ? "Z" : "")); return Number.isNaN(t.getTime()) ? undefined : t.toISOString(); };

function When({ name, label }: { name: string; label: string }) {
  return <label class="row muted">{label}<input type="datetime-local" step="1" value={params.value.get(name) ?? ""} onChange={e => setParams({ [name]: e.currentTarget.value })} /></label>;
}

export function Tail({ bar, beside }: { bar: ComponentChildren; beside?: ComponentChildren }) {
  const q = params.value, stream = q.get("stream"), paused = useSignal(false), box = useRef<HTMLDivElement>(null);
  const filtered = ["stream", "name", "correlation", "actor", "since", "until"].some(n => q.get(n));
  const until = timeOf(q.get("until"));
  const rows = useTail("/events/search" + query({ stream, name: q.get("name"), correlation: q.get("correlation"), actor: q.get("actor"), since: timeOf(q.get("since")), until, backward: true }), until ? [] : [stream ? topicOf(stream) : "streams"], paused.value);
  // The rows above grow: the scroll position grows with them, unless the reader is at the top.
  useLayoutEffect(() => {
    const el = box.current?.querySelector(".scroller"), n = rows.added();
    if (el && n && el.scrollTop > 0) el.scrollTop += n * 32;
  }, [rows.value.value]);
  useKeys({ p: [paused.value ? "continue" : "pause", () => (paused.value = !paused.value)] });
  const current = segments.value[1] === undefined ? undefined : segments.value[1] + (segments.value[2] === undefined ? "" : "/" + segments.value[2]);
  const searching = rows.more.value && !rows.error.value;
  return <Split beside={beside} bar={<>{bar}<div class="filters full">
    <Search name="name" label="Event names, with commas" /><Field name="stream" label="Stream" /><Field name="correlation" label="Correlation" /><Field name="actor" label="Actor" /><When name="since" label="From" /><When name="until" label="Until" />
    <Button icon={paused.value ? "play" : "pause"} aria-pressed={paused.value} onClick={() => (paused.value = !paused.value)} disabled={!!until}>{paused.value ? "Continue" : "Pause"}</Button>
    {paused.value && rows.waiting.value && <span class="muted" role="status">There are newer events.</span>}
    {filtered && <Button class="quiet" icon="x" onClick={() => setParams({ stream: "", name: "", correlation: "", actor: "", since: "", until: "" })}>Clear</Button>}
    {q.get("correlation") && <a class="link" href={to.correlation(q.get("correlation")!)}>Show as a tree</a>}
  </div></>} list={<div class="tail" ref={box}><Table label="Events" rows={rows} id={eventKey} href={eventPath} current={current}
    empty={searching ? <Loading /> : filtered ? <Empty title="No event matches">Correlation and actor are matched as a whole. A search of all streams does not include histories: name one as the stream, such as $entity/invoice/17.</Empty>
      : <Empty title="No events" command={`holdfast streams append orders placed --data '{"total":1250}'`}>Events of all streams appear here as they are appended.</Empty>}
    columns={[
      { title: "Event", cell: e => e.name }, { title: "Stream", cell: e => <a class="mono" href={to.stream(e.stream) + location.search}>{e.stream}</a> },
      { title: "Time", cell: e => <span class="row"><Time at={e.at} />{beside === undefined && <span class="muted mono">{e.at && clockTime(e.at)}</span>}</span> }, { title: "Version", num: true, cell: e => number(e.version), wide: true },
      { title: "Actor", cell: e => e.actor || "–", wide: true }, { title: "Correlation", cell: e => (e.correlation ? <Id id={e.correlation} href={to.correlation(e.correlation)} /> : "–"), wide: true }]} /></div>} />;
}

/** Field is a filter that is applied when it is left, or with Enter: each change searches up to 20,000 events. */
function Field({ name, label }: { name: string; label: string }) {
  const here = params.value.get(name) ?? "";
  return <input type="search" aria-label={label} placeholder={label} key={here} defaultValue={here} onChange={e => setParams({ [name]: e.currentTarget.value.trim() })} />;
}
