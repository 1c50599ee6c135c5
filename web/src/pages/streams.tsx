// Streams: the list, the events of all streams as they come, one stream beside them, and what belongs to one correlation.
import { useEffect } from "preact/hooks";
import type { Stream } from "../api.gen";
import { may, p, query } from "../core/api";
import { usePages } from "../core/data";
import { number } from "../core/format";
import { go, params, segments, setParams, to } from "../core/router";
import { Empty, State, Tabs, Time, useTitle } from "../ui/basic";
import { Act, ask } from "../ui/dialog";
import { Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Split, Table } from "../ui/table";
import { Tree } from "./streams-tree";
import { Tail } from "./streams-events";
import { StreamDetail } from "./streams-detail";

export function Streams() {
  const q = params.value, name = segments.value[1], view = q.get("view") === "events" ? "events" : "streams";
  const correlation = q.get("correlation");
  useTitle(name ?? (correlation ? "Correlation " + correlation : "Streams"));
  useEffect(() => offer([
    ...(may("POST /streams/{stream}/events") ? [{ label: "Append an event to a stream", icon: "plus" as const, run: () => append(name ?? "") }] : []),
    { label: view === "events" ? "List the streams" : "Show the events of all streams", icon: "stream", run: () => setParams({ view: view === "events" ? "" : "events" }) },
  ]), [name, view]);
  if (correlation && !name && view !== "events") return <Tree id={correlation} />;
  const beside = name ? <StreamDetail name={name} key={name} /> : undefined;
  const bar = <><h1>Streams</h1>
    <Tabs all={[{ id: "streams", label: "Streams" }, { id: "events", label: "Events" }]} value={view} onChange={v => setParams({ view: v === "events" ? v : "" }, false)} />
    <span class="grow" /><Act method="POST" path={p`/streams/${name ?? "x"}/events`} icon="plus" onClick={() => append(name ?? "")}>Append</Act></>;
  return view === "events" ? <Tail bar={bar} beside={beside} /> : <List bar={bar} beside={beside} name={name} />;
}

function List({ bar, beside, name }: { bar: preact.ComponentChildren; beside?: preact.ComponentChildren; name?: string }) {
  const prefix = params.value.get("prefix");
  const rows = usePages<Stream>("/streams" + query({ prefix }), { topics: ["streams"] });
  return <Split bar={<>{bar}<div class="filters full"><Search name="prefix" label="Beginning of the name" /></div></>} beside={beside}
    list={<Table label="Streams" rows={rows} id={s => s.name} href={s => to.stream(s.name)} current={name}
      empty={prefix ? <Empty title={`No stream begins with "${prefix}"`}>The filter matches the beginning of names, with its case.</Empty>
        : <Empty title="No streams" command={`holdfast streams append orders placed --data '{"total":1250}'`}>Streams of events that your programs append appear here.</Empty>}
      columns={[
        { title: "Stream", cell: s => s.name }, { title: "State", cell: s => <State of={s.state} title={s.mode} /> },
        { title: "Events", num: true, cell: s => number(s.events) }, { title: "Head", num: true, cell: s => number(s.lastVersion) },
        { title: "Last event", cell: s => s.lastName || "–", wide: true }, { title: "Changed", cell: s => <Time at={s.lastAt} />, wide: true }]} />} />;
}

/** append asks for an event. The expected version is what the person has seen, so that an event in between is noticed. */
export function append(stream: string, version?: number): void {
  ask({
    title: stream ? "Append to " + stream : "Append an event", label: "Append", method: "POST", path: v => p`/streams/${v.stream ?? stream}/events`,
    fields: [
      ...(stream ? [] : [{ name: "stream", label: "Stream", required: true, placeholder: "orders-17" }]),
      { name: "name", label: "Name of the event", required: true, placeholder: "placed" },
      { name: "data", label: "Data (JSON)", kind: "json", value: "{}" },
      { name: "expected", label: "Expected last version", kind: "number", value: version === undefined ? "" : String(version), help: "The append is refused if the stream is at another version. Empty accepts any; -1 means that the stream must not exist." },
      { name: "correlation", label: "Correlation", help: "Optional: what belongs together has the same." },
      { name: "causation", label: "Causation", help: "Optional: the event that this one follows from, as STREAM/VERSION." }],
    send: v => ({ ...(v.expected === undefined ? {} : { expectedVersion: v.expected }), events: [{ name: v.name, data: v.data, correlation: v.correlation, causation: v.causation }] }),
    said: r => `Appended as version ${r.lastVersion} of ${r.stream}.`, done: r => { if (!stream) go(to.stream(r.stream)); },
  });
}
