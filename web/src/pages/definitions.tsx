// Workflow definitions: what runs execute.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { DefinedWorkflow, Definition, Diagram as Drawing, Violation } from "../api.gen";
import { call, curl, may, newKey, p, query, Refused } from "../core/api";
import { useGet, usePages } from "../core/data";
import { duration, plural } from "../core/format";
import { go, params, segments, setParams, to } from "../core/router";
import { Button, copyText, Empty, Failure, Facts, Json, Loading, Notice, Panel, Time, useTitle } from "../ui/basic";
import { Act, curlEntry, Menu, toast } from "../ui/dialog";
import { Diagram } from "../ui/diagram";
import { Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { SimpleTable, Split, Table } from "../ui/table";
import { startRun } from "./runs";
import { brief, Shown } from "./work-part";

export function Definitions() {
  useTitle("Definitions");
  const id = segments.value[1], name = params.value.get("name") ?? "", editing = params.value.get("new") !== null && may("POST /workflow-definitions");
  const read = usePages<Definition>("/workflow-definitions"), all = read.value.value;
  const rows = all && name ? { ...read, value: signal(all.filter(d => d.id.includes(name))) } : read; // the API has no filter, and definitions are few
  useEffect(() => offer(may("POST /workflow-definitions") ? [{ label: "Store a definition", run: () => setParams({ new: "1" }) }] : []), []);
  return <Split bar={<><h1>Definitions</h1><Shown rows={rows} one="definition" /><Search name="name" label="Name" /><span class="grow" /><a class="button" href="/runs">Runs</a>
    <Act method="POST" path="/workflow-definitions" icon="plus" onClick={() => setParams({ new: "1" })}>Store a definition</Act><Menu label="More" entries={[curlEntry("GET", "/workflow-definitions")]} /></>}
    list={<Table label="Definitions" rows={rows} id={d => d.id} href={d => to.definition(d.id)} current={id ?? (editing ? "" : undefined)}
      empty={<Empty title={name ? "No definition has this name" : "No definitions"} command={`holdfast runs define chase.yaml`}>A definition has a name, a version and steps, and never changes. Programs store theirs when they start; others are stored with this command or the button above.</Empty>}
      columns={[{ title: "Definition", cell: d => d.id }, { title: "Order", class: "rest", cell: d => <span class="muted">{d.steps.map((s: any) => s.name).join(" → ")}</span>, wide: true }, { title: "Steps", num: true, cell: d => d.steps.length }, { title: "Stored", cell: d => <Time at={d.createdAt} /> }]} />}
    beside={editing ? <Store from={all?.find(d => d.id === id)} /> : id ? <DefinitionDetail key={id} id={id} all={all ?? []} /> : undefined} />;
}

interface Spec { name: string; type: string; handler?: string; safety?: string; [k: string]: unknown }

function DefinitionDetail({ id, all }: { id: string; all: Definition[] }) {
  const base = p`/workflow-definitions/${id}`, read = useGet<Definition>(base), drawn = useGet<Drawing>(base + "/diagram?format=layout"), d = read.value.value;
  const runs = useGet<{ items: unknown[]; next: string | null }>("/workflow-runs" + query({ definitionId: id, limit: 1000 }));
  if (!d) return <Detail title={id} close="/definitions">{read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />}</Detail>;
  const versions = all.filter(x => x.name === d.name), layout = drawn.value.value?.layout, n = runs.value.value?.items.length;
  const { createdAt: _c, id: _i, ...source } = d;
  return <Detail title={id} close="/definitions" actions={<>
    <Act method="POST" path="/workflow-runs" icon="play" class="primary" onClick={() => startRun([d], id)}>Start a run</Act>
    <Act method="POST" path="/workflow-definitions" onClick={() => setParams({ new: "1" })}>New version</Act>
    <Menu label="More" entries={[curlEntry("GET", base), { label: "Copy the diagram as Mermaid", icon: "copy", run: () => void call<Drawing>(base + "/diagram?format=mermaid").then(m => copyText(m.diagram)).then(() => toast("Copied."), e => toast(e.message, "danger")) }]} /></>}>
    <Facts of={[["Name", d.name], ["Version", d.version], ["Stored", <Time at={d.createdAt} />], ["Retention", d.retentionMs ? duration(d.retentionMs) + " after the end of a run" : "the default of the server"],
      ["Runs", <a class="link" href={"/runs?definition=" + encodeURIComponent(id)}>{n === undefined ? "Show them" : plural(n, "run") + (runs.value.value!.next ? " or more" : "")}</a>],
      ["Versions", <span class="kinds">{versions.map(v => <a key={v.id} href={to.definition(v.id) + location.search} aria-current={v.id === id ? "page" : undefined}>{v.version}</a>)}</span>]]} />
    <Panel title="Diagram" flush>{layout ? <Diagram layout={layout} label={"Diagram of " + id} height={Math.max(140, Math.min(420, layout.height + 60))} least={.8} /> : drawn.error.value ? <Failure error={drawn.error.value} retry={drawn.reload} /> : <Loading />}</Panel>
    <Panel title="Steps" flush><SimpleTable of={d.steps as Spec[]} id={s => s.name} columns={[
      { title: "Step", cell: s => s.name }, { title: "Type", cell: s => s.type }, { title: "Handler", cell: s => s.handler ? <a class="link" href={to.handler(s.handler)}>{s.handler}</a> : "–" }, { title: "Safety", cell: s => s.safety ?? "–" },
      { title: "More", class: "mono rest", cell: s => { const { name: _n, type: _t, handler: _h, safety: _s, ...rest } = s; return <span class="muted" title={JSON.stringify(rest, null, 2)}>{brief(rest)}</span>; } }]} /></Panel>
    <Panel title="Source" actions={<Button class="small" icon="copy" onClick={() => void copyText(JSON.stringify(source, null, 2)).then(() => toast("Copied."))}>Copy</Button>}><Json value={source} label="Source of the definition" /></Panel>
  </Detail>;
}

const example = { name: "chase", version: "1", steps: [{ name: "remind", type: "task", handler: "SendReminder", safety: "idempotent" }, { name: "paid", type: "event", signal: "payment", timeoutMs: 1209600000 }] };

/** Store checks a definition first, and shows all violations at once; then it stores it. */
function Store({ from }: { from?: Definition }) {
  const [text, set] = useState(() => {
    if (!from) return JSON.stringify(example, null, 2);
    const { createdAt: _c, id: _i, ...source } = from;
    return JSON.stringify({ ...source, version: /^\d+$/.test(from.version) ? String(Number(from.version) + 1) : from.version + "-next" }, null, 2);
  });
  const [checked, setChecked] = useState<{ text: string; warnings: Violation[]; id: string; key: string }>(), [error, setError] = useState<Refused>(), [busy, setBusy] = useState(false);
  const good = checked?.text === text;
  const send = async (dryRun: boolean) => {
    let body: unknown;
    setError(undefined);
    try { body = JSON.parse(text); } catch (e) { setError(new Refused("NOT_JSON", "The text is not JSON: " + (e as Error).message, 0, "")); return; }
    setBusy(true);
    try {
      const r = await call<DefinedWorkflow>("/workflow-definitions" + (dryRun ? "?dryRun=true" : ""), { method: "POST", body, key: dryRun ? undefined : checked?.key });
      if (dryRun) setChecked({ text, warnings: r.warnings ?? [], id: r.id, key: newKey() });
      else { toast(`Stored ${r.id}.`); go(to.definition(r.id)); }
    } catch (e) { setChecked(undefined); setError(e as Refused); }
    setBusy(false);
  };
  const copy = () => { try { void copyText(curl("POST", "/workflow-definitions?dryRun=true", JSON.parse(text))).then(() => toast("Copied as curl.")); } catch { toast("The text is not JSON.", "danger"); } };
  return <Detail title="Store a definition" actions={<Button class="quiet" icon="x" onClick={() => setParams({ new: "" })}>Close</Button>}>
    <label class="field">Definition (JSON)<textarea class="source" rows={22} spellcheck={false} value={text} onInput={e => set(e.currentTarget.value)} /><small>A name and a version identify one definition, which never changes. To change a workflow, store a new version.</small></label>
    {error && (error.problem?.violations?.length ? <Violations all={error.problem.violations} tone="danger" title={`${plural(error.problem.violations.length, "violation")}: nothing was stored`} /> : <Failure error={error} />)}
    {good && (checked!.warnings.length ? <Violations all={checked!.warnings} tone="waiting" title={`${checked!.id} is valid, with ${plural(checked!.warnings.length, "warning")}`} /> : <Notice tone="ok" icon="check"><p>{checked!.id} is valid.</p></Notice>)}
    <div class="row wrap"><Button class="quiet" icon="copy" onClick={copy}>Copy as curl</Button><span class="grow" />
      <Button class={good ? "" : "primary"} disabled={busy} onClick={() => void send(true)}>Check</Button><Button class={good ? "primary" : ""} disabled={busy || !good} title={good ? undefined : "Check it first"} onClick={() => void send(false)}>Store</Button></div>
  </Detail>;
}

const Violations = ({ all, tone, title }: { all: Violation[]; tone: "danger" | "waiting"; title: string }) => <Notice tone={tone} icon={tone === "danger" ? "x" : "warning"}><p><strong>{title}</strong></p>
  <ul class="stack tight">{all.map((v, i) => <li key={i}><p><code>{v.rule}</code> {v.message} <span class="muted">at {v.path || "/"}{v.line ? `, line ${v.line}` : ""}</span></p></li>)}</ul></Notice>;
