// A correlation as a tree: each event below the event that it follows from, across streams.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Event } from "../api.gen";
import { get, p, query, Refused } from "../core/api";
import { useFollow } from "../core/data";
import { duration, plural } from "../core/format";
import { subjectLink, to } from "../core/router";
import { Button, Empty, Failure, Icon, Json, Loading, Notice, Time } from "../ui/basic";
import { Page } from "../ui/shell";
import { eventKey } from "./streams-events";

interface Node { e: Event; below: Node[]; /** It has another correlation, and is here because it is a cause. */ outside: boolean }

/** The event that a causation names: STREAM/VERSION or STREAM@VERSION. */
export const causeOf = (text: string): { stream: string; version: number } | undefined => { const m = /^(.+)[/@](\d+)$/.exec(text); return m ? { stream: m[1], version: Number(m[2]) } : undefined; };

/** plant arranges events by causation. An event whose cause is not among them is a root. Each event appears once, also if causes form a circle. */
export function plant(events: Event[], id: string): Node[] {
  const order = (a: Event, b: Event) => Date.parse(a.at ?? "") - Date.parse(b.at ?? "") || (a.stream === b.stream ? a.version - b.version : 0);
  const nodes = new Map<string, Node>();
  for (const e of [...events].sort(order)) nodes.set(eventKey(e), { e, below: [], outside: e.correlation !== id });
  const byPosition = new Map([...nodes.values()].filter(n => n.e.position).map(n => [n.e.position!, n]));
  const parent = new Map<Node, Node>(), roots: Node[] = [];
  for (const n of nodes.values()) {
    const c = causeOf(n.e.causation), up = (c && nodes.get(eventKey(c))) || byPosition.get(n.e.causation);
    let circle = false;
    for (let x = up; x; x = parent.get(x)) if (x === n) circle = true;
    if (up && !circle) { parent.set(n, up); up.below.push(n); } else roots.push(n);
  }
  return roots;
}

const most = 2000, mostCauses = 50;

/** read collects the events of a correlation, and the events that they name as causes, which may be in histories. */
async function read(id: string, abort: AbortSignal): Promise<{ events: Event[]; complete: boolean }> {
  const events: Event[] = [];
  let cursor: string | null = "", requests = 0;
  for (; cursor !== null && events.length < most && requests < 50; requests++) {
    const page: { items: Event[]; next: string | null } = await get("/events/search" + query({ correlation: id, limit: 500, cursor }), { signal: abort });
    events.push(...page.items);
    cursor = page.next;
  }
  const have = new Set(events.map(eventKey)), asked = new Set<string>();
  for (let i = 0; i < events.length && asked.size < mostCauses; i++) {
    const c = causeOf(events[i].causation);
    if (!c || have.has(eventKey(c)) || asked.has(eventKey(c))) continue;
    asked.add(eventKey(c));
    // The cause may have been truncated, or the text may not be the name of an event: then there is none.
    const found = await get<{ items: Event[] }>(p`/streams/${c.stream}/events` + query({ from: c.version, limit: 1 }), { signal: abort }).then(r => r.items[0], e => { if (e.name === "AbortError") throw e; });
    if (found?.version === c.version) { have.add(eventKey(found)); events.push(found); }
  }
  return { events, complete: cursor === null };
}

export function Tree({ id }: { id: string }) {
  const found = useMemo(() => signal<{ events: Event[]; complete: boolean } | undefined>(undefined), []);
  const error = useSignal<Refused | undefined>(undefined), stale = useSignal(false), again = useSignal(0);
  useEffect(() => {
    const abort = new AbortController();
    error.value = undefined;
    read(id, abort.signal).then(r => { found.value = r; stale.value = false; }, e => { if (!abort.signal.aborted) error.value = e instanceof Refused ? e : new Refused("INTERNAL", String(e), 0, ""); });
    return () => abort.abort();
  }, [id, again.value]);
  useFollow({ topics: ["streams"], when: m => m.reset || m.changes.some(c => c.kind === "stream") || m.folded.some(c => c.kind === "stream") }, () => (stale.value = true));
  const reload = () => again.value++;
  const r = found.value, roots = r && plant(r.events, id), start = r && Math.min(...r.events.map(e => Date.parse(e.at ?? "")).filter(t => !Number.isNaN(t)));
  const mine = r?.events.filter(e => e.correlation === id).length ?? 0;
  return <Page title={<span class="mono clip">{id}</span>} crumbs={<><a href="/streams">Streams</a><Icon name="right" /><span>Correlation</span></>}
    actions={<><a class="button" href={"/streams" + query({ view: "events", correlation: id })}>Show as a list</a><Button icon="refresh" onClick={reload}>Read again</Button></>}>
    {error.value && <Notice tone="danger"><Failure error={error.value} retry={reload} /></Notice>}
    {stale.value && r && <Notice tone="active" icon="refresh"><p>Streams have changed since this was read. <button type="button" class="bare link" onClick={reload}>Read again</button></p></Notice>}
    {!r ? !error.value && <Loading /> : mine === 0
      ? <Empty title="No event has this correlation" command={`holdfast streams append orders placed --correlation ${id}`}>Events that are appended with the same correlation appear here, each below its cause. A cause is named as STREAM/VERSION.</Empty>
      : <><p class="muted">{plural(mine, "event")} in {plural(new Set(r.events.map(e => e.stream)).size, "stream")} within {duration(Math.max(0, ...r.events.map(e => Date.parse(e.at ?? "") - start!)))}. Each is below the event that it names as its cause.{!r.complete && ` Only the first ${most} are shown.`}</p>
        <section class="panel"><div class="body flush"><ul class="tree" aria-label="Events by cause">{roots!.map(n => <Branch key={eventKey(n.e)} n={n} start={start!} />)}</ul></div></section></>}
  </Page>;
}

function Branch({ n, start }: { n: Node; start: number }) {
  const { e } = n, subject = e.stream.startsWith("$") ? subjectLink(e.stream) : undefined, open = useSignal(false);
  return <li>
    <div class="line">
      <Button class="quiet icon-only small" icon={open.value ? "down" : "right"} aria-expanded={open.value} aria-label={`Data of ${e.name}`} onClick={() => (open.value = !open.value)} />
      <span class="offset mono">+{duration(Math.max(0, Date.parse(e.at ?? "") - start))}</span><strong>{e.name}</strong><a class="mono clip link" href={to.stream(e.stream) + "/" + e.version}>{e.stream}/{e.version}</a>
      {subject && <a class="link" href={subject}>Open {e.stream.split("/")[0].slice(1)}</a>}{n.outside && <span class="muted">cause, with another correlation</span>}<span class="grow" />{e.actor && <span class="muted clip actor">{e.actor}</span>}<Time at={e.at} />
    </div>
    {open.value && <div class="stack tight event">{e.causation && <p class="muted">Causation <code>{e.causation}</code></p>}<Json value={e.data} label={`Data of ${e.stream} version ${e.version}`} /></div>}
    {n.below.length > 0 && <ul>{n.below.map(b => <Branch key={eventKey(b.e)} n={b} start={start} />)}</ul>}
  </li>;
}
