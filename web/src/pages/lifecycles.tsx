// Lifecycles: the list, the live diagram of one with its entities beside it, and the entity that is open.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Diagram as Drawing, DiagramLayout, Entity, Lifecycle, LifecycleDetails, LiveChange, Tally } from "../api.gen";
import { may, p, query } from "../core/api";
import { useFollow, useGet, usePages } from "../core/data";
import { duration, number, plural } from "../core/format";
import { useKeys } from "../core/keyboard";
import { about, lastState, topic } from "../core/live";
import { go, params, segments, setParams, to } from "../core/router";
import { Empty, Facts, Failure, Id, Json, Loading, Notice, Panel, State, Time, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { Diagram } from "../ui/diagram";
import { Choice, Range, since } from "../ui/filter";
import { offer } from "../ui/palette";
import { Page } from "../ui/shell";
import { SimpleTable, Split, Table } from "../ui/table";
import { EntityDetail, standing } from "./lifecycles-entity";

export function Lifecycles() {
  const [, name, ...id] = segments.value;
  if (name === undefined) return <List />;
  return <One key={name} name={name} id={id.length ? id.join("/") : undefined} />;
}

function List() {
  useTitle("Lifecycles");
  const rows = usePages<Lifecycle>("/lifecycles"), all = rows.value.value;
  return <Page title="Lifecycles" actions={<Menu label="More actions" entries={[curlEntry("GET", "/lifecycles")]} />}>
    {rows.error.value && <Notice tone="danger"><Failure error={rows.error.value} retry={rows.reload} /></Notice>}
    {!all ? (rows.error.value ? null : <Loading />) : <Panel title={plural(all.length, "lifecycle") + (rows.more.value ? " and more" : "")} flush>
      <SimpleTable of={all} id={l => l.name} href={l => to.lifecycle(l.name)} empty={<Empty title="No lifecycles" command="holdfast lifecycles put order.yaml">A lifecycle defines the statuses of an entity and the steps between them. Those that a program defines, and those that are published, appear here.</Empty>}
        columns={[{ title: "Lifecycle", cell: l => l.name }, { title: "Entities", num: true, cell: l => <Counted name={l.name} total /> }, { title: "By status", cell: l => <Counted name={l.name} />, class: "counts" }, { title: "Statuses", num: true, cell: l => number(l.statuses.length) }, { title: "Revision", num: true, cell: l => number(l.revision) }]} />
    </Panel>}
  </Page>;
}

/** useCounts counts the entities of a lifecycle by status: once by request, then as the stream says. */
function useCounts(name: string) {
  const read = useGet<Tally>(p`/lifecycles/${name}/counts`), live = useSignal<Tally | undefined>(lastState().counts?.[name]);
  useFollow({ topics: [topic("lifecycle", name)] }, m => { if (m.state?.counts?.[name]) live.value = m.state.counts[name]; else if (m.reset) read.reload(); });
  return { tally: live.value ?? read.value.value, error: read.error.value };
}

function Counted({ name, total }: { name: string; total?: boolean }) {
  const { tally, error } = useCounts(name);
  if (!tally) return error ? <span class="tone tone-danger" title={error.message}>{error.code}</span> : <span class="muted">…</span>;
  if (total) return <>{number(Object.values(tally.counts).reduce((n, c) => n + c, 0))}{tally.capped ? "+" : ""}</>;
  return <span class="row">{Object.entries(tally.counts).map(([status, n]) => <a key={status} class="nowrap" href={`${to.lifecycle(name)}?status=${encodeURIComponent(status)}`}>{status} <span class="count">{number(n)}</span></a>)}</span>;
}

function One({ name, id }: { name: string; id?: string }) {
  const details = useGet<LifecycleDetails>(p`/lifecycles/${name}`), drawing = useGet<Drawing>(p`/lifecycles/${name}/diagram?format=layout`);
  useTitle(id === undefined ? name : `${name} ${id}`);
  const q = params.value, subject = topic("lifecycle", name);
  const rows = usePages<Entity>(p`/lifecycles/${name}/entities` + query({ status: q.get("status"), since: since("created"), updatedSince: since("changed") }), { topics: [subject], when: about("entity") });
  const l = details.value.value;
  const create = () => ask({
    title: `Create an entity of ${name}`, label: "Create", method: "POST", path: p`/lifecycles/${name}/entities`,
    fields: [{ name: "id", label: "Id", help: "Generated if it is empty." }, { name: "data", label: "Data", kind: "json", placeholder: '{"cents": 1250}', help: "A JSON object. Optional." }, { name: "status", label: "Status", kind: "select", options: [{ value: "", label: "initial status of the config" }, ...(drawing.value.value?.layout?.nodes ?? []).filter(n => n.kind !== "claim").map(n => ({ value: n.id, label: n.id }))] }],
    send: v => ({ id: v.id, data: v.data, status: v.status }), said: (e: Entity) => `Created ${e.id}.`, done: (e: Entity) => go(to.entity(name, e.id)),
  });
  const mayCreate = may("POST /lifecycles/{name}/entities");
  useKeys(mayCreate && id === undefined ? { c: ["create an entity", create] } : {});
  useEffect(() => (id === undefined && mayCreate ? offer([{ label: `Create an entity of ${name}`, icon: "plus", run: create }]) : undefined), [id, mayCreate, drawing.value.value]);

  const filters = <><Choice name="status" label="Status" options={(l?.statuses ?? []).map(value => ({ value, label: value }))} /><Range name="changed" label="Changed" /><Range name="created" label="Created" /></>;
  const list = <Table label={`Entities of ${name}`} rows={rows} id={e => e.id} href={e => to.entity(name, e.id)} current={id}
    empty={<Empty title={q.get("status") ? `No entity is ${q.get("status")}` : "No entities"} command={`holdfast entities create ${name} --id e-1 --data '{}'`}>Entities of this lifecycle appear here.</Empty>}
    columns={[{ title: "Entity", cell: e => <Id id={e.id} most={22} /> }, { title: "Status", cell: e => <State of={e.status} {...standing(e)} /> },
      { title: "Claim", cell: e => (e.claim ? e.claim.uncertain ? "uncertain" : e.claim.holder ? <>{e.claim.holder}, ends <Until at={e.claim.until} over="ended" /></> : "waits for a worker" : <span class="muted">–</span>), wide: true }, { title: "Version", num: true, cell: e => number(e.version) }, { title: "Changed", cell: e => <Time at={e.updatedAt} /> }]} />;

  if (id !== undefined) {
    const entity = <EntityDetail key={id} lifecycle={name} id={id} details={l} diagram={drawing.value.value} />;
    return q.get("full") === "1" ? entity : <Split bar={<><h1 class="clip"><a href={to.lifecycle(name) + keep()}>{name}</a></h1>{filters}</>} list={list} beside={entity} />;
  }
  return <Page title={name} crumbs={<a href="/lifecycles">Lifecycles</a>} actions={l && <><Act method="POST" path={p`/lifecycles/${name}/entities`} icon="plus" class="primary" onClick={create}>Create entity</Act><Menu label="More actions" entries={[curlEntry("GET", p`/lifecycles/${name}`), { ...curlEntry("GET", p`/lifecycles/${name}/diagram?format=mermaid`), label: "Copy the diagram as curl (Mermaid)" }]} /></>}>
    {details.error.value ? <Failure error={details.error.value} retry={details.reload} /> : !l ? <Loading /> : <>
      {l.warnings.map((w, i) => <Notice key={i} tone="waiting"><p><strong>{w.rule}</strong> {w.message} <span class="muted mono">{w.path}{w.line ? `, line ${w.line}` : ""}</span></p></Notice>)}
      <LiveDiagram name={name} drawing={drawing.value.value} error={drawing.error.value && <Failure error={drawing.error.value} retry={drawing.reload} />} />
      <div class="lifecycle">
        <section class="panel"><div class="bar"><h2>Entities</h2>{filters}</div>{list}</section>
        <Panel title="Config"><Facts of={[["Origin", l.origin === "program" ? "defined by a program" : "published through the API"], ["Revision", number(l.revision)], ["Module", l.config?.owning_module], ["Table", l.config?.entity_table], ["Janitor", l.janitor.kind === "none" ? "none: there are no claims to recover" : `${l.janitor.kind === "program" ? "of the program" : "standard"}; a claim lasts ${duration(l.janitor.stuckAfterMs)} without renewal${l.janitor.everyMs ? `, swept every ${duration(l.janitor.everyMs)}` : ""}`], ["Lint", l.warnings.length ? <State of={plural(l.warnings.length, "warning")} tone="waiting" icon="warning" /> : <State of="no warnings" tone="ok" icon="check" />]]} />
          <details class="source"><summary>Source ({l.source ? "YAML" : "JSON"})</summary>{l.source ? <pre class="json" tabIndex={0} role="region" aria-label="Config">{l.source}</pre> : <Json value={l.config} label="Config" />}</details></Panel>
      </div></>}
  </Page>;
}

/** keep returns the filters in the address, without what belongs to one entity. */
function keep(): string {
  const q = params.value;
  return query({ status: q.get("status"), changed: q.get("changed"), created: q.get("created") });
}

/** edgeOf returns the statuses that a change has moved an entity between. Long events come without data: then the diagram says it, if only one edge fits. */
function edgeOf(c: LiveChange, layout: DiagramLayout): [string, string] | undefined {
  if (c.data?.from) return c.data.from === c.data.to ? undefined : [c.data.from, c.data.to];
  const [what, step] = c.name.split("/");
  const fits = step === undefined ? [] : layout.edges.filter(e => (what === "settled" ? e.kind === "done" && e.label === step + " done" || e.kind === "step" && (e.label === step || e.label.startsWith(step + " (")) : what === "failed" && e.kind === "failed" && e.label === step + " failed"));
  return fits.length === 1 ? [fits[0].from, fits[0].to] : undefined;
}

function LiveDiagram({ name, drawing, error }: { name: string; drawing?: Drawing; error?: ComponentChildren }) {
  const { tally } = useCounts(name), move = useRef<(from: string, to: string) => void>(undefined), status = params.value.get("status"), layout = drawing?.layout;
  const current = useRef<DiagramLayout>(undefined);
  current.current = layout;
  useFollow({ topics: [topic("lifecycle", name)] }, m => {
    if (!current.current) return;
    // The steps of one entity follow each other, so that a claim is seen before it is settled.
    const turns = new Map<string, number>();
    for (const c of m.changes) {
      if (c.kind !== "entity" || !c.subject.startsWith(name + "/")) continue;
      const edge = edgeOf(c, current.current), turn = turns.get(c.subject) ?? 0;
      if (!edge) continue;
      turns.set(c.subject, turn + 1);
      setTimeout(() => move.current?.(...edge), turn * 170);
    }
  });
  const counts = layout && tally ? Object.fromEntries(layout.nodes.map(n => [n.id, tally.counts[n.id] ?? 0])) : undefined, total = Object.values(tally?.counts ?? {}).reduce((n, c) => n + c, 0);
  return <Panel title="Diagram" flush actions={<span class="muted">{tally ? plural(total, "entity", "entities") + (tally.capped ? " counted, there are more" : "") : ""}{status && <> · <button type="button" class="bare link" onClick={() => setParams({ status: null })}>all statuses</button></>}</span>}>
    {error ?? (!layout ? <Loading /> : <Diagram layout={layout} label={`Diagram of ${name}. Each status leads to its entities.`} counts={counts} on={status ? [status] : undefined} least={.75} height={Math.max(160, Math.min(420, layout.height + 72))} tokens={f => (move.current = f)}
      href={n => `${to.lifecycle(name)}${query({ status: n.id === status ? undefined : n.id, changed: params.value.get("changed"), created: params.value.get("created") })}`} />)}
    <p class="diagram-legend muted"><span class="dash" /> a claim: somebody works on the entity · a token moves when a step commits · click a status for its entities</p>
  </Panel>;
}

