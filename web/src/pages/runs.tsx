// Runs: the list, actions on many, and the run that is open beside it.
import { useEffect } from "preact/hooks";
import type { BulkFilter, Definition, ListDefinition, ListRun, Run } from "../api.gen";
import { get, may, query, Refused } from "../core/api";
import { useGet, usePages } from "../core/data";
import { sentence } from "../core/format";
import { about } from "../core/live";
import { go, params, segments, to } from "../core/router";
import { Button, Empty, Icon, Id, State, Time, useTitle } from "../ui/basic";
import { ask, curlEntry, Menu, toast } from "../ui/dialog";
import { Choice, Range, Search, since } from "../ui/filter";
import { offer } from "../ui/palette";
import { Split, Table } from "../ui/table";
import { RunDetail } from "./runs-detail";
import { startBulk } from "./operate-part";
import { ClearFilters, options, Shown } from "./work-part";

const statuses = ["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"];
type Command = "retry" | "cancel" | "pause" | "resume";
const commands: { name: Command; label: string; from: string[] }[] = [
  { name: "retry", label: "Retry", from: ["FAILED"] }, { name: "pause", label: "Pause", from: ["RUNNING"] }, { name: "resume", label: "Resume", from: ["PAUSED"] },
  { name: "cancel", label: "Cancel", from: ["PENDING", "RUNNING", "WAITING", "PAUSED"] }];
const names = ["status", "definition", "key", "step", "handler", "range"];

export function Runs() {
  useTitle("Runs");
  const q = params.value, id = segments.value[1];
  const filter = { status: q.get("status"), definitionId: q.get("definition"), key: q.get("key"), step: q.get("step"), handler: q.get("handler"), since: since() };
  const path = "/workflow-runs" + query(filter);
  const rows = usePages<Run>(path, { topics: ["runs"], when: about("run") });
  const defined = useGet<ListDefinition>("/workflow-definitions?limit=1000").value.value?.items ?? [];
  const steps = defined.filter(d => !filter.definitionId || d.id === filter.definitionId).flatMap(d => d.steps as { name: string; handler?: string }[]);
  useEffect(() => offer([
    ...(may("POST /workflow-runs") ? [{ label: "Start a run", run: () => startRun(defined) }] : []),
    ...(may("POST /bulk") ? commands.map(c => ({ label: `${c.label} all runs that match the filter`, run: () => void matching(c.name, filter) })) : []),
  ]), [defined.length, path]);
  const all = commands.filter(c => !filter.status || c.from.includes(filter.status));
  return <Split bar={<><h1>Runs</h1><Shown rows={rows} one="run" />
    <div class="filters">
      <Choice name="status" label="Status" options={statuses} /><Choice name="definition" label="Definition" options={options("definition", defined.map(d => d.id))} />
      <Choice name="step" label="Step" options={options("step", steps.map(s => s.name))} /><Choice name="handler" label="Handler" options={options("handler", steps.flatMap(s => s.handler ?? []))} />
      <Range label="Created" /><Search name="key" label="Key" /><ClearFilters names={names} />
    </div>
    <span class="grow" />
    <a class="button" href="/definitions">Definitions</a>
    {may("POST /workflow-runs") && <Button icon="plus" onClick={() => startRun(defined)}>Start a run</Button>}
    <Menu label="Actions on all runs that match" entries={[
      ...all.map(c => ({ label: `${c.label} all that match`, hidden: !may("POST /bulk"), danger: c.name === "cancel", run: () => void matching(c.name, filter) })), curlEntry("GET", path)]} /></>}
    list={<Table label="Runs" rows={rows} id={r => r.id} href={r => to.run(r.id)} current={id}
      selection={may("POST /bulk") ? (ids, clear) => <>{commands.map(c => <Button key={c.name} class={c.name === "cancel" ? "small danger" : "small"} onClick={() => void bulk(c.name, { ids }, clear)}>{c.label}</Button>)}</> : undefined}
      empty={names.some(n => q.get(n)) ? <Empty title="No run matches the filter">Remove a filter to see more.</Empty> : <Empty title="No runs" command={`holdfast runs start DEFINITION --input '{}'`}>A run executes a workflow definition. Runs that you start appear here.</Empty>}
      columns={[
        { title: "Run", cell: r => <Id id={r.id} /> }, { title: "Status", cell: r => <span class="row"><State of={r.status} />{r.cancelRequested && r.status !== "CANCELLED" && <span class="tone tone-waiting" title="cancellation was requested"><Icon name="stop" /></span>}</span> },
        { title: "Definition", cell: r => <a href={to.definition(r.definitionId)}>{r.definitionId}</a>, wide: true }, { title: "Step", cell: r => r.currentStepName ?? "–" },
        { title: "Key", cell: r => r.idempotencyKey ? <Id id={r.idempotencyKey} most={26} /> : "–", wide: true }, { title: "Error", class: "rest", cell: r => <span title={r.error ?? ""}>{r.error ?? ""}</span>, wide: true }, { title: "Created", cell: r => <Time at={r.createdAt} /> }]} />}
    beside={id ? <RunDetail key={id} id={id} /> : undefined} />;
}

/** startRun asks for a definition and an input, and opens the run that was started. */
export function startRun(defined: Definition[], chosen?: string): void {
  ask({ title: "Start a run", label: "Start", method: "POST", path: "/workflow-runs",
    fields: [
      defined.length ? { name: "definitionId", label: "Definition", kind: "select", options: defined.map(d => ({ value: d.id, label: d.id })), value: chosen ?? defined[0].id } : { name: "definitionId", label: "Definition", placeholder: "chase@1", required: true, value: chosen },
      { name: "input", label: "Input (a JSON object)", kind: "json", value: "{}" },
      { name: "idempotencyKey", label: "Key", help: "Every start with the same key returns the same run. Optional." }],
    send: v => v, said: r => (r.created ? "Started." : "A run with this key exists already."), done: r => go(to.run(r.run.id)) });
}

/** matching acts on all runs that match the filter of the list. The filter of a bulk has no key, step and handler: with these, the runs are listed first. */
async function matching(name: Command, f: Record<string, string | null | undefined>): Promise<void> {
  if (!f.key && !f.step && !f.handler) {
    const filter: BulkFilter = { status: f.status ?? undefined, definitionId: f.definitionId ?? undefined, since: f.since ?? undefined };
    return bulk(name, { filter });
  }
  try {
    const from = commands.find(c => c.name === name)!.from, ids: string[] = [];
    let next: string | null = null;
    do {
      const page: ListRun = await get<ListRun>("/workflow-runs" + query({ ...f, limit: 1000, cursor: next }));
      ids.push(...page.items.filter(r => from.includes(r.status)).map(r => r.id));
      next = page.next;
    } while (next && ids.length <= 1000);
    if (ids.length > 1000) { toast("More than 1,000 runs match. Choose a narrower filter.", "danger"); return; }
    if (!ids.length) { toast("No run that matches the filter permits this action.", "waiting"); return; }
    return bulk(name, { ids });
  } catch (e) {
    toast(<>{sentence((e as Refused).message)} <code>{(e as Refused).code}</code></>, "danger");
  }
}

/** bulk first asks what the action would touch, and then the person. */
const bulk = (name: Command, which: { ids?: string[]; filter?: BulkFilter }, clear?: () => void) => startBulk({ title: `${sentence(name)} runs`, label: sentence(name), danger: name === "cancel", make: () => ({ action: `run.${name}`, ...which }), done: clear,
  said: () => name === "cancel" && <p>Completed work is not undone; a step in flight ends first.</p> });
