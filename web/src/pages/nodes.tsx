// Nodes: the servers and programs that run on the database, and how they are.
import { useEffect } from "preact/hooks";
import type { Node, NodeServes } from "../api.gen";
import { may } from "../core/api";
import { useFollow, usePages } from "../core/data";
import { number, plural } from "../core/format";
import { params, segments, to } from "../core/router";
import { Empty, Facts, Loading, Notice, Panel, State, Time, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { Choice } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { SimpleTable, Split, Table } from "../ui/table";
import { Missing } from "./operate-part";

/** nodeState is one word for how a node is. */
export const nodeState = (n: Node) => (n.gone ? "gone" : n.stalled ? "stalled" : "ready");

/** maintain runs the background work of the server that gets the request. */
export const maintain = () => ask({ title: "Run maintenance", label: "Run", method: "POST", path: "/maintenance", send: () => ({}), body: <p>The server that gets the request releases expired leases, deletes what retention permits and continues runs whose timers are due. A node does this regularly; the request is safe at any time.</p>, said: r => `Node ${r?.node} has run it.` });

export function Nodes() {
  useTitle("Nodes");
  const id = segments.value[1], wanted = params.value.get("state"), permitted = may("POST /maintenance");
  const rows = usePages<Node>("/nodes", { topics: ["nodes"], when: m => m.reset || (m.state?.nodes?.length ?? 0) >= 100 });
  useFollow({ topics: ["nodes"] }, m => { if (m.state?.nodes && m.state.nodes.length < 100) rows.set(m.state.nodes); });
  const shown = rows.value.value?.filter(n => !wanted || nodeState(n) === wanted);
  const open = id === undefined ? undefined : rows.value.value?.find(n => n.name === id);
  useEffect(() => permitted ? offer([{ label: "Run maintenance", icon: "server", run: maintain }]) : undefined, [permitted]);
  return <Split bar={<><h1>Nodes</h1><Choice name="state" label="State" options={["ready", "stalled", "gone"]} /><span class="grow" /><Act method="POST" path="/maintenance" onClick={maintain}>Run maintenance</Act><Menu label="More" entries={[curlEntry("GET", "/nodes")]} /></>}
    list={<Table label="Nodes" rows={{ ...rows, value: { get value() { return shown; } } as typeof rows.value }} id={n => n.name} href={n => to.node(n.name)} current={id}
      empty={<Empty title={wanted ? `No node is ${wanted}` : "No nodes"} command={wanted ? undefined : "holdfast serve --db postgres://…"}>A server or a program that runs an engine reports every 10 seconds, and is listed here within a second of its start.</Empty>}
      columns={[
        { title: "Node", cell: n => n.name }, { title: "State", cell: n => <State of={nodeState(n)} /> }, { title: "Version", cell: n => n.version, wide: true }, { title: "Started", cell: n => <Time at={n.startedAt} />, wide: true }, { title: "Last seen", cell: n => <Time at={n.seenAt} /> },
        { title: "Sweeps", cell: n => <Sweeps of={n} /> }, { title: "Connections", cell: n => `${n.pool.busy} of ${n.pool.size}`, num: true, wide: true }, { title: "Queued", cell: n => number(n.queued), num: true, wide: true }, { title: "Waiting", cell: n => number(n.waiting), num: true, wide: true }, { title: "Serves", cell: n => number(n.serves.length), num: true, wide: true }]} />}
    beside={id === undefined ? undefined : open ? <NodeDetail n={open} /> : rows.value.value ? <Detail title={id} close="/nodes"><Missing what="node" id={id} /></Detail> : <Loading />} />;
}

/** Sweeps says whether the sweeps of a node's janitor succeed. */
export function Sweeps({ of: n }: { of: Node }) {
  const failed = n.sweeps.filter(s => s.error);
  if (failed.length) return <State of={plural(failed.length, "sweep") + " failed"} tone="danger" icon="warning" title={failed.map(s => `${s.name}: ${s.error}`).join("\n")} />;
  return n.stalled ? <State of="stalled" /> : n.sweeps.length ? <State of={plural(n.sweeps.length, "sweep")} tone="ok" icon="check" /> : <span class="muted">none yet</span>;
}

/** The page of what a node polls for. */
function servedPage({ kind, name, remote }: NodeServes): string | undefined {
  if (!name || name.startsWith("$") && !name.startsWith("$hook:") && !name.startsWith("$after:")) return undefined;
  return kind === "reaction" ? to.reaction(name) : kind === "operation" && !remote ? to.lifecycle(name) : kind === "step" || kind === "batch" || kind === "operation" ? to.handler(name) : undefined;
}

function NodeDetail({ n }: { n: Node }) {
  const serves = [...n.serves].sort((a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name));
  return <Detail title={n.name} state={<State of={nodeState(n)} />} close="/nodes" actions={<Menu label="More" entries={[curlEntry("GET", "/nodes")]} />}>
    {n.gone && <Notice tone="danger"><p>The node has not reported for 30 seconds: it has crashed, or cannot reach the database. Its leases expire, and other nodes take over its work.</p></Notice>}
    {!n.gone && n.stalled && <Notice tone="danger"><p>The janitor does not complete its sweeps, so this node releases nothing. The error is below.</p></Notice>}
    {n.snapshot && <Notice tone="waiting"><p>A transaction has been open since <Time at={n.snapshot.since} /> ({n.snapshot.by}). Until it ends, PostgreSQL cannot remove old rows.</p></Notice>}
    <Panel title="Node"><Facts of={[["Version", n.version], ["Started", <Time at={n.startedAt} />], ["Last seen", <Time at={n.seenAt} />], ["Connections", `${n.pool.busy} of ${n.pool.size} in use`], ["Queued", `${plural(n.queued, "stream")} waiting for capacity`], ["Waiting", `${plural(n.waiting, "caller")} waiting for a wake-up`],
      ["Oldest snapshot", n.snapshot ? <><Time at={n.snapshot.since} /> ({n.snapshot.by})</> : "none"]]} /></Panel>
    <Panel title={`Sweeps of the janitor (${n.sweeps.length})`} flush><SimpleTable of={n.sweeps} id={s => s.name} empty={<Empty title="No sweeps yet">The first round of the janitor lists them.</Empty>} columns={[
      { title: "Sweep", cell: s => s.name }, { title: "Result", cell: s => <State of={s.error ? "failed" : "done"} /> }, { title: "Last run", cell: s => <Time at={s.at} /> }, { title: "Error", cell: s => s.error || <span class="muted">–</span>, class: "wrap" }]} /></Panel>
    <Panel title={`Polls for (${n.serves.length})`} flush><SimpleTable of={serves} id={(s, i) => s.kind + s.name + s.remote + i} empty={<Empty title="Nothing">Neither the node nor a worker through it polls for work.</Empty>} columns={[
      { title: "Work", cell: s => s.kind }, { title: "Name", cell: s => { const page = servedPage(s); return page ? <a class="link" href={page}>{s.name}</a> : s.name || <span class="muted">all</span>; } }, { title: "For", cell: s => (s.remote ? "a worker, within the last minute" : "itself") }]} /></Panel>
  </Detail>;
}
