// Races: writes that were refused because another writer came first, grouped by what they lost to.
import type { Race, Refusal } from "../api.gen";
import { usePages } from "../core/data";
import { number, plural } from "../core/format";
import { segments, subjectLink, to } from "../core/router";
import { Button, Empty, Facts, Id, Loading, Panel, State, Time, useTitle } from "../ui/basic";
import { curlEntry, Menu } from "../ui/dialog";
import { Detail } from "../ui/shell";
import { SimpleTable, Split, Table } from "../ui/table";
import { Actor, Missing } from "./operate-part";

/** A race has no id: it is what was lost to. */
const idOf = (r: Race) => r.operation || `${r.stream}@${r.winner?.version ?? r.refusals[0]?.version}`;
const page = (r: Race) => "/races/" + encodeURIComponent(idOf(r));

/** The page of the object that was raced for; an entity has a race view. */
const objectPage = (r: Race) => subjectLink(r.stream) + (r.stream.startsWith("$entity/") ? "?view=race&race=" + encodeURIComponent(r.operation || "v" + (r.winner?.version ?? r.refusals[0]?.version)) : "");
const name = (stream: string) => stream.replace(/^\$/, "");

/** codes counts the refusals by code. */
function codes(r: Race): [string, number][] {
  const n = new Map<string, number>();
  for (const x of r.refusals) n.set(x.code, (n.get(x.code) ?? 0) + x.standsFor);
  return [...n].sort((a, b) => b[1] - a[1]);
}

export function Races() {
  useTitle("Races");
  const id = segments.value[1];
  const rows = usePages<Race>("/races", { topics: ["races"], when: m => m.reset || !!m.state?.races });
  const open = id === undefined ? undefined : rows.value.value?.find(r => idOf(r) === id);
  return <Split bar={<><h1>Races</h1><span class="muted">writes that were refused because another came first, of the last week</span><span class="grow" /><Button icon="refresh" onClick={rows.reload}>Reload</Button><Menu label="More" entries={[curlEntry("GET", "/races")]} /></>}
    list={<Table label="Races" rows={rows} id={idOf} href={page} current={id}
      empty={<Empty title="No races" command={"holdfast races\nholdfast dev --demo"}>When several callers want the same step, claim or version, one wins. The others are refused, and are listed here by what they lost to.</Empty>}
      columns={[
        { title: "Object", cell: r => name(r.stream) }, { title: "Refused", cell: r => number(r.refused), num: true }, { title: "Codes", cell: r => codes(r).map(([c, n]) => `${c} ${n}`).join(", ") },
        { title: "Winner", cell: r => r.winner?.name ?? <span class="muted">no longer stored</span>, wide: true }, { title: "By", cell: r => <Actor of={r.winner?.actor ?? ""} />, wide: true },
        { title: "Won", cell: r => <Time at={r.winner?.at} />, wide: true }, { title: "Last refusal", cell: r => <Time at={r.refusals[0]?.at} /> }]} />}
    beside={id === undefined ? undefined : open ? <RaceDetail race={open} /> : rows.value.value ? <Detail title="Race" close="/races"><Missing what="race" id={id} /></Detail> : <Loading />} />;
}

function RaceDetail({ race: r }: { race: Race }) {
  const view = objectPage(r), callers = new Set(r.refusals.map(x => x.actor + x.requestId)).size;
  return <Detail title={name(r.stream)} state={<State of={plural(r.refused, "refusal")} tone="danger" icon="x" />} close="/races" actions={<a class="button" href={view}>{r.stream.startsWith("$entity/") ? "Open the race view" : "Open the object"}</a>}>
    <Panel title="Winner"><Facts of={[
      ["Object", <a class="link" href={view}>{name(r.stream)}</a>], ["Event", r.winner ? `${r.winner.name} (version ${r.winner.version})` : "no longer stored"], ["By", <Actor of={r.winner?.actor ?? ""} none="a janitor or a node" />], ["At", <Time at={r.winner?.at} />],
      ["Operation", r.operation ? <Id id={r.operation} href={to.operation(r.operation)} most={40} /> : undefined], ["Refused", `${plural(r.refused, "write")} in ${plural(callers, "request")}`]]} /></Panel>
    <Panel title="Refused, latest first" flush><SimpleTable<Refusal> of={r.refusals} id={x => x.id} columns={[
      { title: "Tried", cell: x => x.action }, { title: "Code", cell: x => <code>{x.code}</code> }, { title: "By", cell: x => <Actor of={x.actor} /> }, { title: "It saw", cell: x => seen(x) }, { title: "At", cell: x => <Time at={x.at} /> }, { title: "Requester", cell: x => x.requester || "–" },
      { title: "Stands for", cell: x => number(x.standsFor), num: true }, { title: "Epoch", cell: x => x.epoch || "–", num: true }, { title: "Node", cell: x => <a href={to.node(x.node)}>{x.node}</a> }, { title: "Request", cell: x => (x.requestId ? <Id id={x.requestId} most={16} /> : "–") }]} /></Panel>
  </Detail>;
}

/** What the loser saw, from the refusal. */
const seen = (x: Refusal) => `version ${x.version}` + Object.entries(x.detail ?? {}).filter(([k, v]) => ["status", "holder", "lastVersion", "entityStatus"].includes(k) && v !== "").map(([k, v]) => `, ${k} ${v}`).join("");
