// One reaction: its definition, its positions, and what blocks it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Event, Position, Reaction } from "../api.gen";
import { may, mayCall, p, query } from "../core/api";
import { useGet, usePages } from "../core/data";
import { duration, number, plural } from "../core/format";
import { useKeys } from "../core/keyboard";
import { params, segments, subjectLink, to } from "../core/router";
import { Empty, Facts, Failure, Loading, Notice, Panel, State, Time, Until } from "../ui/basic";
import { Act, curlEntry, Menu } from "../ui/dialog";
import { Choice, Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Table } from "../ui/table";
import { behind, servedBy } from "./reactions";
import { bulk, define, pattern, remove, reset, skip, unblock } from "./reactions-actions";
import { EventBody } from "./streams-detail";
import { eventPath, topicOf } from "./streams-events";

const shownBlocked = 10;
const topicName = (name: string) => "reaction:" + name.replaceAll("%", "%25").replaceAll(",", "%2C");

export function ReactionDetail({ name }: { name: string }) {
  const chosen = segments.value[2], topics = [topicName(name)], path = p`/reactions/${name}`;
  const read = useGet<Reaction>(path, { topics });
  const blocked = useGet<{ items: Position[]; next: string | null }>(p`/reactions/${name}/streams` + query({ blocked: true, limit: shownBlocked }), { topics });
  const r = read.value.value, stuck = blocked.value.value?.items ?? [], own = !name.startsWith("$");
  const all = () => void bulk("reaction.unblock", { filter: { reaction: name } });
  useEffect(() => offer([
    ...(stuck.length && may("POST /bulk") ? [{ label: `Unblock all streams of ${name}`, icon: "bolt" as const, run: all }] : []),
    ...(may("POST /reactions/{name}/reset") ? [{ label: `Reset ${name}`, icon: "undo" as const, run: () => void reset(name) }] : []),
    ...(r && own && may("PUT /reactions/{name}") ? [{ label: `Change ${name}`, run: () => define(r) }] : []),
  ]), [name, r, stuck.length]);
  useKeys({ u: ["unblock the first blocked stream", () => { if (stuck[0] && may("POST /reactions/{name}/unblock")) unblock(stuck[0], blocked.reload); }] });
  const count = stuck.length + (blocked.value.value?.next ? "+" : "");
  return <Detail title={<span class="mono">{name}</span>} close="/reactions" state={blocked.value.value && (stuck.length ? <State of="blocked" title={`${count} blocked`} /> : <State of="ready" title="No stream is blocked." />)} actions={<>
    {stuck.length > 0 && <Act method="POST" path="/bulk" icon="bolt" class="primary" onClick={() => (stuck.length === 1 && !blocked.value.value?.next ? unblock(stuck[0], blocked.reload) : all())}>{stuck.length === 1 && !blocked.value.value?.next ? "Unblock" : "Unblock all"}</Act>}
    <Menu label={"More actions for " + name} entries={[
      { label: "Skip the failed event of all blocked streams", icon: "right", danger: true, hidden: !stuck.length || !mayCall("POST", "/bulk"), run: () => void bulk("reaction.skip", { filter: { reaction: name } }) },
      { label: "Reset, after a dry run", icon: "undo", danger: true, hidden: !mayCall("POST", path + "/reset"), run: () => void reset(name) },
      { label: "Change the definition", icon: "braces", hidden: !r || !own || !mayCall("PUT", path), run: () => r && define(r) },
      { label: "Delete", icon: "x", danger: true, hidden: !r || !own || !mayCall("DELETE", path), run: () => r && remove(r) },
      curlEntry("GET", p`/reactions/${name}/streams`)]} />
  </>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    {blocked.error.value && !read.error.value && <Notice tone="danger"><Failure error={blocked.error.value} retry={blocked.reload} /></Notice>}
    {!r && !read.error.value && <Loading />}
    {chosen !== undefined && !stuck.some(x => x.stream === chosen) && <Chosen name={name} stream={chosen} r={r} />}
    {stuck.map((x, i) => <Stuck key={x.stream} x={x} r={r} reload={blocked.reload} first={chosen === undefined ? i === 0 : x.stream === chosen} />)}
    {blocked.value.value?.next && <p class="muted">There are more blocked streams: see the positions below.</p>}
    {r && <Definition r={r} />}
    {r && <Positions name={name} chosen={chosen} topics={topics} />}
  </Detail>;
}

function Definition({ r }: { r: Reaction }) {
  const b = r.backoff;
  return <Panel title="Definition"><Facts of={[
    ["Events", r.events.map(e => <code key={e}>{e} </code>)], ["Streams", r.streams ? <code>{r.streams}</code> : "all"], ["Source", r.source === "history" ? "histories" : "streams of programs"], ["Start", r.start === "now" ? "with the first event after it was created" : "with the first stored event"],
    ["Served by", servedBy(r)], ["Retries", `${number(r.maxRetries)}, ${b.kind} from ${duration(b.baseMs)} to ${duration(b.maxMs)}`], ["Crashes", `blocked after ${number(r.maxDeaths)}`], ["After the last retry", r.blockOnError ? "the stream is blocked" : "the event is skipped"],
    ["Lease", duration(r.leaseMs)], ["Priority", r.priority ? r.priority + " s" : "0"], ["Changed", <Time at={r.updatedAt} />]]} /></Panel>;
}

/** Stuck shows a blocked position: the error, the event, and what to do. */
function Stuck({ x, r, reload, first }: { x: Position; r?: Reaction; reload: () => void; first: boolean }) {
  const e = useFailing(x, r), open = useSignal(first);
  return <section class="panel tone-danger stuck" data-stream={x.stream}><header><State of="blocked" /><h2 class="clip"><a class="mono" href={subjectLink(x.stream)}>{x.stream}</a></h2><div class="actions">
    <Act method="POST" path={p`/reactions/${x.reaction}/unblock`} class="primary" onClick={() => unblock(x, reload)}>Unblock</Act>
    <Act method="POST" path={p`/reactions/${x.reaction}/skip`} class="danger" onClick={() => skip(x, e.event)}>Skip</Act>
    <Menu label={"More actions for " + x.stream} entries={more(x)} /></div></header>
    <div class="body stack tight"><p class="error">{x.error || "No error was recorded."}</p>{open.value ? <><At x={x} /><Blocking x={x} {...e} /></> : <p><button type="button" class="bare link" aria-expanded={false} onClick={() => (open.value = true)}>Show the event and the position</button></p>}</div></section>;
}

const more = (x: Position) => [
  { label: "Reset this stream, after a dry run", icon: "undo" as const, danger: true, hidden: !mayCall("POST", p`/reactions/${x.reaction}/reset`), run: () => void reset(x.reaction, [x.stream]) },
  curlEntry("POST", p`/reactions/${x.reaction}/unblock`, { streams: [x.stream] })];

/** Chosen shows the position that was opened from the list. */
function Chosen({ name, stream, r }: { name: string; stream: string; r?: Reaction }) {
  const read = useGet<{ items: Position[] }>(p`/reactions/${name}/streams` + query({ stream: pattern([stream]) }), { topics: [topicName(name), topicOf(stream)] });
  const x = read.value.value?.items[0], e = useFailing(x, r);
  if (read.error.value) return <Failure error={read.error.value} retry={read.reload} />;
  if (!read.value.value) return <Loading />;
  if (!x) return <Notice tone="waiting"><p><code>{name}</code> has no position in <code>{stream}</code>: it has seen no event of it yet.</p></Notice>;
  return <Panel title={<a class="mono" href={subjectLink(stream)}>{stream}</a>} actions={<>{x.failing !== null && <Act method="POST" path={p`/reactions/${name}/skip`} class="danger" onClick={() => skip(x, e.event)}>Skip</Act>}<Menu label={"More actions for " + stream} entries={more(x)} /></>}>
    <div class="stack tight">{x.error && <p class="error">{x.error}</p>}<At x={x} />{x.failing !== null && <Blocking x={x} {...e} />}</div></Panel>;
}

/** At says where a position is. */
const At = ({ x }: { x: Position }) => <Facts of={[
  ["Watermark", x.watermark < 0 ? "before the first event" : number(x.watermark)], ["Head", number(x.head)], ["Behind", behind(x) ? plural(behind(x), "event") : "nothing to do"],
  ["Retries", number(x.retry)], ["Crashes", x.deaths ? number(x.deaths) : undefined], ["Lost hand-outs", x.lostHandOuts ? number(x.lostHandOuts) : undefined], ["Next attempt", !x.blocked && x.notBefore && behind(x) ? <Until at={x.notBefore} over="due" /> : undefined],
  ["Lease", x.leasedBy ? <>{x.leasedBy}, until <Until at={x.leasedUntil} over="expired" /></> : "none"], ["Reset", x.resetRequested ? "when the lease ends" : undefined]]} />;

/** useFailing reads the event that failed. */
function useFailing(x: Position | undefined, r?: Reaction): { event?: Event; error?: import("../core/api").Refused; retry: () => void } {
  const version = x?.failing ?? (x?.blocked ? x.watermark + 1 : null);
  const read = useGet<{ items: Event[] }>(x && version !== null ? p`/streams/${x.stream}/events` + query({ from: version, limit: x.failing === null ? 100 : 1 }) : null);
  const names = r?.events ?? ["*"];
  return { event: read.value.value?.items.find(e => x?.failing !== null ? e.version === version : names.includes("*") || names.includes(e.name)), error: read.error.value, retry: read.reload };
}

function Blocking({ x, event, error, retry }: { x: Position; event?: Event; error?: import("../core/api").Refused; retry: () => void }) {
  if (error) return <Failure error={error} retry={retry} />;
  if (!event) return <p class="muted">Version {number(x.failing ?? x.watermark + 1)} is being read, or is no longer stored.</p>;
  return <div><h3>The event that failed: <a class="link" href={eventPath(event)}>{event.name}, version {number(event.version)}</a>, <Time at={event.at} /></h3><EventBody e={event} /></div>;
}

function Positions({ name, chosen, topics }: { name: string; chosen?: string; topics: string[] }) {
  const q = params.value, only = q.get("blocked");
  const rows = usePages<Position>(p`/reactions/${name}/streams` + query({ blocked: only, stream: q.get("stream") }), { topics });
  const id = (x: Position) => x.reaction + "/" + x.stream;
  return <Panel flush title="Positions" actions={<><Search name="stream" label="Streams (RE2)" /><Choice name="blocked" label="Blocked" options={[{ value: "true", label: "blocked" }, { value: "false", label: "not blocked" }]} /></>}>
    <Table label={"Positions of " + name} keys={false} height="320px" rows={rows} id={id} href={x => to.reaction(name) + "/" + encodeURIComponent(x.stream)} current={chosen === undefined ? undefined : name + "/" + chosen}
      empty={only || q.get("stream") ? <Empty title="No position matches">Change the filters.</Empty> : <Empty title="No positions">A position appears here with the first event that the reaction has to handle.</Empty>}
      selection={may("POST /bulk") ? (ids, clear) => <><Act method="POST" path="/bulk" icon="bolt" onClick={() => void bulk("reaction.unblock", { ids }, clear)}>Unblock</Act><Act method="POST" path="/bulk" class="danger" onClick={() => void bulk("reaction.skip", { ids }, clear)}>Skip</Act>
        <Act method="POST" path={p`/reactions/${name}/reset`} class="danger" onClick={() => void reset(name, ids.map(i => i.slice(name.length + 1)))}>Reset</Act></> : undefined}
      columns={[
        { title: "Stream", cell: x => x.stream }, { title: "State", cell: x => <State of={x.blocked ? "blocked" : x.leasedBy ? "leased" : x.retry ? "retrying" : behind(x) ? "due" : "done"} title={x.error || undefined} /> },
        { title: "Behind", num: true, cell: x => number(behind(x)) }, { title: "Watermark", num: true, cell: x => number(x.watermark) }, { title: "Head", num: true, cell: x => number(x.head) },
        { title: "Lease", wide: true, cell: x => (x.leasedBy ? <>{x.leasedBy} <Until at={x.leasedUntil} over="expired" /></> : "–") }]} />
  </Panel>;
}
