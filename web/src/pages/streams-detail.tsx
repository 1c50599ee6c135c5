// One stream: what is known about it, its events, and what can be done to it.
import { useEffect, useRef } from "preact/hooks";
import type { Event, StreamStatistics } from "../api.gen";
import { may, mayCall, p, query } from "../core/api";
import { useGet } from "../core/data";
import { number, plural } from "../core/format";
import { go, params, segments, setParams, subjectLink, to } from "../core/router";
import { Button, Empty, Facts, Failure, Icon, Id, Json, Loading, Notice, Panel, State, Tabs, Time } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { append } from "./streams";
import { eventPath, topicOf } from "./streams-events";

const perPage = 50;

export function StreamDetail({ name }: { name: string }) {
  const history = name.startsWith("$"), follow = { topics: [topicOf(name)] };
  const read = useGet<StreamStatistics>(history ? null : p`/streams/${name}`, follow);
  const s = read.value.value, open = s?.state === "open";
  useEffect(() => offer([
    ...(open && may("POST /streams/{stream}/events") ? [{ label: "Append to " + name, icon: "plus" as const, run: () => append(name, s!.lastVersion) }] : []),
    ...(open && may("POST /streams/{stream}/truncate") ? [{ label: "Truncate " + name, icon: "x" as const, run: () => truncate(s!) }] : []),
    ...(open && may("POST /streams/{stream}/close") ? [{ label: "Close " + name, icon: "lock" as const, run: () => close(s!) }] : []),
  ]), [name, open, s?.lastVersion]);
  return <Detail title={<span class="mono">{name}</span>} state={s && <State of={s.state} title={s.mode} />} close="/streams" actions={<>
    {history && <a class="button" href={subjectLink(name)}>Open its subject<Icon name="right" /></a>}
    {open && <><Act method="POST" path={p`/streams/${name}/events`} icon="plus" onClick={() => append(name, s.lastVersion)}>Append</Act>
      <Act method="POST" path={p`/streams/${name}/close`} icon="lock" onClick={() => close(s)}>Close</Act></>}
    <Menu label={"More actions for " + name} entries={[
      { label: "Truncate", icon: "x", danger: true, hidden: !open || s.events < 2 || !mayCall("POST", p`/streams/${name}/truncate`), run: () => s && truncate(s) },
      { label: "Search its events", icon: "search", run: () => go("/streams" + query({ view: "events", stream: name })) },
      curlEntry("GET", p`/streams/${name}/events`)]} />
  </>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    {!history && !s && !read.error.value && <Loading />}
    {s && <Statistics s={s} />}
    {(history || s) && <Events name={name} follow={follow.topics} last={s?.lastVersion} />}
  </Detail>;
}

function Statistics({ s }: { s: StreamStatistics }) {
  const names = Object.entries(s.names).sort((a, b) => b[1] - a[1]), most = names[0]?.[1] ?? 1;
  return <div class="grid">
    <Panel title="Stream"><Facts of={[
      ["Events", number(s.events)], ["Versions", s.events ? `${number(s.firstVersion)} to ${number(s.lastVersion)}` : "none"], ["First event", <Time at={s.firstAt} />], ["Last event", <><span>{s.lastName}</span> <Time at={s.lastAt} /></>],
      ["Removed", s.firstVersion > 0 ? `${plural(s.firstVersion, "event")} before version ${number(s.firstVersion)}` : undefined], ["Closed as", s.mode]]} /></Panel>
    <Panel title={<>Events by name{s.counted < s.events && <span class="muted"> · newest {number(s.counted)}</span>}</>}>
      <ul class="bars">{names.slice(0, 12).map(([n, count]) => <li key={n}><span class="clip">{n}</span><i style={{ width: Math.max(1, (100 * count) / most) + "%" }} aria-hidden="true" /><span class="right">{number(count)}</span></li>)}</ul>
      {names.length > 12 && <p class="muted">{plural(names.length - 12, "more name")}</p>}
    </Panel>
  </div>;
}

/** Events shows the events of a stream in pages, in both directions. The open event is in the path. */
function Events({ name, follow, last }: { name: string; follow: string[]; last?: number }) {
  const q = params.value, forward = q.get("order") === "forward", from = q.get("from") ?? "";
  const chosen = segments.value[2];
  // An event that is opened by its address is on the page that begins with it.
  const start = from !== "" ? Number(from) : chosen !== undefined && q.get("order") === null && last !== undefined && Number(chosen) <= last - perPage ? Number(chosen) : undefined;
  const path = p`/streams/${name}/events` + query({ backward: !forward, from: start, limit: perPage });
  const read = useGet<{ items: Event[]; next: string | null }>(path, start === undefined ? { topics: follow } : {});
  const items = read.value.value?.items;
  const page = (to: number | undefined) => setParams({ from: to === undefined ? "" : String(Math.max(0, to)) });
  const end = items?.[items.length - 1]?.version, begin = items?.[0]?.version;
  const order = (o: string) => setParams({ order: o === "forward" ? o : "", from: "" });
  return <Panel flush title="Events" actions={<Tabs all={[{ id: "backward", label: "Newest first" }, { id: "forward", label: "Oldest first" }]} value={forward ? "forward" : "backward"} onChange={order} />}>
    {read.error.value && <Failure error={read.error.value} retry={read.reload} />}
    {!items ? !read.error.value && <Loading /> : items.length === 0 ? <Empty title="No events here">This part of the stream has no events: they were truncated, or the stream was closed with "tombstone".</Empty>
      : <ol class="events" aria-label={"Events of " + name}>{items.map(e => <EventRow key={e.version} e={e} open={String(e.version) === chosen} />)}</ol>}
    {items && items.length > 0 && <div class="bar row"><span class="muted">Versions {number(Math.min(begin!, end!))} to {number(Math.max(begin!, end!))}</span><span class="grow" />
      {start !== undefined && <Button class="small" onClick={() => page(undefined)}>{forward ? "First" : "Newest"}</Button>}
      {start !== undefined && <Button class="small" icon="left" onClick={() => page(forward ? Math.max(0, begin! - perPage) : begin! + perPage)}>{forward ? "Older" : "Newer"}</Button>}
      {read.value.value!.next !== null && <Button class="small" icon="right" onClick={() => page(forward ? end! + 1 : end! - 1)}>{forward ? "Newer" : "Older"}</Button>}</div>}
  </Panel>;
}

/** EventRow is one event, with its data if it is open. */
export function EventRow({ e, open }: { e: Event; open: boolean }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => { if (open) row.current?.scrollIntoView({ block: "nearest" }); }, [open]);
  return <li class={open ? "open" : ""} ref={row}>
    <a class="line" href={(open ? to.stream(e.stream) : eventPath(e)) + location.search} aria-expanded={open}><Icon name={open ? "down" : "right"} /><span class="num">{e.version}</span><strong class="clip grow">{e.name}</strong>{e.actor && <span class="muted clip actor">{e.actor}</span>}<Time at={e.at} /></a>
    {open && <EventBody e={e} />}
  </li>;
}

export function EventBody({ e }: { e: Event }) {
  return <div class="stack tight event">
    <Facts of={[["Stream", <a class="mono link" href={subjectLink(e.stream)}>{e.stream}</a>], ["Version", String(e.version)], ["Position", e.position ?? undefined], ["Actor", e.actor || undefined], ["Correlation", e.correlation ? <Id id={e.correlation} href={to.correlation(e.correlation)} most={40} /> : undefined],
      ["Causation", e.causation ? <Cause text={e.causation} /> : undefined]]} />
    <Json value={e.data} label={`Data of ${e.stream} version ${e.version}`} />
  </div>;
}

/** Cause links to the event that a causation names, if it names one. */
export function Cause({ text }: { text: string }) {
  const c = /^(.+)[/@](\d+)$/.exec(text);
  return c ? <a class="mono link" href={to.stream(c[1]) + "/" + c[2]}>{text}</a> : <span class="mono">{text}</span>;
}

function truncate(s: StreamStatistics): void {
  const gone = (v: { before?: number }) => Math.max(0, Math.min(v.before ?? s.firstVersion, s.lastVersion) - s.firstVersion);
  ask({
    title: "Truncate " + s.name, label: "Delete events", danger: true, method: "POST", path: p`/streams/${s.name}/truncate`, touches: gone,
    body: v => gone(v) > 0 ? <p>Versions {number(s.firstVersion)} to {number(s.firstVersion + gone(v) - 1)} of <code>{s.name}</code> are deleted for good: {plural(gone(v), "event")} of {number(s.events)}.</p> : <p>The stream has the versions {number(s.firstVersion)} to {number(s.lastVersion)}. Events below the first version to keep are deleted for good.</p>,
    fields: [
      { name: "before", label: "First version to keep", kind: "number", required: true, value: String(Math.max(s.firstVersion, s.lastVersion - 99)) },
      { name: "snapshot", label: "State that the deleted events led to (JSON)", kind: "json", help: "Required only if a Go program folds the stream." }],
    send: v => ({ before: v.before, snapshot: v.snapshot }), said: "Truncated.",
  });
}

function close(s: StreamStatistics): void {
  const deletes = (mode: string) => mode === "tombstone" || mode === "restart";
  ask({
    title: "Close " + s.name, label: "Close", danger: true, method: "POST", path: p`/streams/${s.name}/close`, touches: v => (deletes(v.mode) ? s.events : 1),
    body: v => <p>{deletes(v.mode) ? <>All {plural(s.events, "event")} of <code>{s.name}</code> are deleted for good{v.mode === "restart" ? ", and the stream continues with the snapshot." : ". Nothing can be appended afterwards."}</> : <>Nothing can be appended to <code>{s.name}</code> afterwards. Its {plural(s.events, "event")} can still be read.</>} A close is refused while a reaction still has events of the stream to handle.</p>,
    fields: [
      { name: "mode", label: "Mode", kind: "select", options: [{ value: "archive", label: "archive: keep the events" }, { value: "tombstone", label: "tombstone: delete the events" }, { value: "restart", label: "restart: replace the events by a snapshot" }] },
      { name: "expected", label: "Expected last version", kind: "number", value: String(s.lastVersion), help: "The close is refused if an event was appended since." },
      { name: "snapshot", label: "Snapshot (JSON), for restart", kind: "json" }],
    send: v => ({ mode: v.mode, expectedVersion: v.expected, snapshot: v.snapshot }), said: r => `Closed (${r.mode}) at version ${r.lastVersion}.`,
  });
}
