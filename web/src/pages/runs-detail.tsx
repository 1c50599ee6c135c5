// One run: why it is where it is, its graph, its attempts over time, its data and its events.
import { useEffect } from "preact/hooks";
import type { Approval, Definition, Diagram as Drawing, Event, InboxItem, ListApproval, Operation, Run, RunStep } from "../api.gen";
import { get, mayCall, p, Refused } from "../core/api";
import { useGet } from "../core/data";
import { absolute, plural, sentence } from "../core/format";
import { useKeys } from "../core/keyboard";
import { about, topic } from "../core/live";
import { params, setParams, to } from "../core/router";
import { Button, Empty, Failure, Facts, type IconName, Id, Json, Loading, Notice, Panel, State, Time, type Tone, toneOf, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu, quick, toast } from "../ui/dialog";
import { Diagram } from "../ui/diagram";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { SimpleTable } from "../ui/table";
import { decide, mayDecide } from "./approvals";
import { Legend, Marks, precise, visitsOf, Waterfall } from "./runs-waterfall";
import { Events, useInboxEntries, useOwnParams, Why } from "./work-part";

interface Spec { name: string; type: string; handler?: string; signal?: string; prompt?: unknown }
const over = (r: Run) => ["COMPLETED", "FAILED", "CANCELLED"].includes(r.status);

export function RunDetail({ id }: { id: string }) {
  useOwnParams("runs", ["visit"]);
  const base = p`/workflow-runs/${id}`, follow = { topics: [topic("run", id)], when: about("run", id) };
  const read = useGet<Run>(base, follow), steps = useGet<{ items: RunStep[]; next: string | null }>(base + "/steps?limit=1000", follow);
  const events = useGet<{ items: Event[]; next: string | null }>(p`/streams/${"$run/" + id}/events` + "?backward=true&limit=1000", follow);
  const run = read.value.value, definition = run?.definitionId;
  const def = useGet<Definition>(definition ? p`/workflow-definitions/${definition}` : null), drawn = useGet<Drawing>(definition ? p`/workflow-definitions/${definition}/diagram` + "?format=layout" : null);
  const approvals = useGet<ListApproval>("/approvals?runId=" + encodeURIComponent(id), follow);
  const entries = useInboxEntries(i => i.subject === id || i.subject.startsWith(id + "/"));
  useTitle(run ? `${run.definitionId} ${run.status.toLowerCase()}` : "Run");
  const all = steps.value.value?.items ?? [], current = all.findLast(s => s.name === run?.currentStepName) ?? all.at(-1);
  const specs = (def.value.value?.steps ?? []) as Spec[], spec = specs.find(s => s.name === current?.name);
  const actions = run ? runActions(run, current, specs) : [];
  useEffect(() => offer(actions.map(a => ({ label: `${a.label} this run`, run: a.run }))), [run?.status, run?.version]);
  useKeys(Object.fromEntries(actions.filter(a => a.key).map(a => [a.key!, [`${a.label.toLowerCase()} the run`, a.run]])));
  if (!run) return <Detail title="Run" close="/runs">{read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />}</Detail>;

  const visits = visitsOf(run, all, [...(events.value.value?.items ?? [])].reverse());
  const chosen = params.value.get("visit") ?? (current && current.name + "/" + current.visit), visit = visits.find(v => v.key === chosen);
  const layout = drawn.value.value?.layout, tones = Object.fromEntries(all.map(s => [s.name, s.uncertain ? "uncertain" : toneOf(s.status)]));
  if (run.status === "COMPLETED") tones.end = "ok";
  const signals = (events.value.value?.items ?? []).filter(e => e.name === "signalled"), shorten = params.value.get("axis") !== "true";
  const main = actions.filter(a => a.main);
  return <Detail title={<Id id={id} most={42} />} state={<><State of={run.status} />{current?.uncertain && <State of="uncertain" />}</>} close="/runs" actions={<>
    {main.map(a => <Button key={a.label} icon={a.icon} onClick={a.run}>{a.label}</Button>)}
    <Menu label="More actions" entries={[...actions.filter(a => !a.main).map(a => ({ label: a.label, icon: a.icon, danger: a.danger, run: a.run })), { ...curlEntry("GET", base), label: "Copy as curl" }]} /></>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    <WhyRun run={run} step={current} spec={spec} entry={entries[0]} approval={approvals.value.value?.items.find(a => a.status === "pending")} steps={all} />
    <Facts of={[
      ["Definition", <a class="link" href={to.definition(run.definitionId)}>{run.definitionId}</a>], ["Key", run.idempotencyKey ? <Id id={run.idempotencyKey} most={60} /> : null],
      ["Created", <Time at={run.createdAt} />], ["Started", <Time at={run.startedAt} none="not yet" />], ["Finished", run.finishedAt ? <><Time at={run.finishedAt} />, after {precise(Date.parse(run.finishedAt) - Date.parse(run.createdAt!))}</> : null],
      ["Version", run.version]]} />
    <Panel title="Steps" flush actions={def.value.value && <span class="shown">{plural(specs.length, "step")}, {plural(all.length, "visit")}{steps.value.value?.next && "+"}</span>}>
      {layout ? <Diagram layout={layout} label={`Graph of ${run.definitionId}. ${all.map(s => `${s.name}: ${s.uncertain ? "uncertain" : s.status.toLowerCase()}`).join(", ")}`} height={Math.max(120, Math.min(260, layout.height * .8 + 40))} least={.8} tones={tones} on={run.status === "COMPLETED" ? ["end"] : current ? [current.name] : []} />
        : drawn.error.value ? <Failure error={drawn.error.value} retry={drawn.reload} /> : <Loading />}
    </Panel>
    <Panel title="Attempts over time" flush actions={<label class="row"><input type="checkbox" checked={shorten} onChange={e => setParams({ axis: e.currentTarget.checked ? "" : "true" })} />Shorten waits</label>}>
      {steps.error.value ? <Failure error={steps.error.value} retry={steps.reload} /> : events.error.value ? <Failure error={events.error.value} retry={events.reload} /> : !steps.value.value ? <Loading />
        : visits.length ? <><Waterfall run={run} visits={visits} chosen={chosen} choose={key => setParams({ visit: key })} shorten={shorten} /><Legend /></> : <Empty title="No step has begun">The first step is taken as soon as a node or a worker serves it.</Empty>}
    </Panel>
    {visit?.step && <VisitPanel run={run} s={visit.step} />}
    <div class="grid">
      <Panel title="Input"><Json value={run.input} label="Input of the run" /></Panel>
      <Panel title="State"><Json value={run.state} label="State of the run" /></Panel>
      <Panel title="Output">{run.status === "COMPLETED" ? <Json value={run.output} label="Output of the run" /> : <p class="muted">A run has an output when it is completed.</p>}</Panel>
    </div>
    <Panel title="Signals" flush actions={!over(run) && <Act method="POST" path={base + "/signals"} class="small" onClick={() => signalRun(run, specs)}>Send a signal</Act>}>
      <SimpleTable of={signals} id={e => String(e.version)} empty={<p class="body muted">No signal has arrived{specs.some(s => s.type === "event") ? `. The definition waits for ${specs.filter(s => s.signal).map(s => s.signal).join(", ")}` : ""}.</p>} columns={[
        { title: "Signal", cell: e => (e.data as any)?.type ?? "–" }, { title: "Id", cell: e => <Id id={(e.data as any)?.id ?? ""} /> }, { title: "By", cell: e => e.actor || "–" }, { title: "When", cell: e => <Time at={e.at} /> }]} />
    </Panel>
    {(approvals.value.value?.items.length ?? 0) > 0 && <Panel title="Approvals" flush><SimpleTable of={approvals.value.value!.items} id={a => a.id} href={a => to.approval(a.id)} columns={[
      { title: "Prompt", cell: a => a.prompt }, { title: "Status", cell: a => <State of={a.status} /> }, { title: "By", cell: a => a.label || a.by || "–" }, { title: "When", cell: a => <Time at={a.decidedAt ?? a.createdAt} /> }]} /></Panel>}
    <Events stream={"$run/" + id} kind="run" subject={id} />
  </Detail>;
}

/** The sentences of failed and uncertain runs are those of the inbox. */
function reasonOf(run: Run, s?: RunStep, spec?: Spec): [tone: Tone, icon: IconName, text: string, at?: string | null] {
  const because = (text: string, cause?: string | null) => (cause ? `${text}: ${cause}${/[.?!]$/.test(cause) ? "" : "."}` : text + ".");
  const step = `step "${s?.name ?? run.currentStepName ?? "?"}"`;
  if (s?.uncertain) return ["uncertain", "question", because(`It is not known whether an effect of ${step} happened`, s.error)];
  switch (run.status) {
    case "FAILED": return ["danger", "x", because(run.currentStepName ? `The run of ${run.definitionId} failed at step "${run.currentStepName}"` : "The run failed", run.error)];
    case "COMPLETED": return ["ok", "check", `Completed${run.finishedAt ? " after " + precise(Date.parse(run.finishedAt) - Date.parse(run.createdAt!)) : ""}.`];
    case "CANCELLED": return ["neutral", "stop", run.currentStepName ? `Cancelled at step "${run.currentStepName}". Completed work was not undone.` : "Cancelled before a step began."];
    case "PAUSED": return ["waiting", "pause", s?.holder ? `Paused. ${sentence(step)} is in flight at ${s.holder}; its result is stored, and no further step begins.` : "Paused: no further step begins until the run is resumed."];
  }
  if (!s) return ["waiting", "clock", "The first step has not been entered yet."];
  if (s.holder) return ["active", "play", `${s.holder} executes ${step}, attempt ${s.attempts}. The lease ends`, s.until];
  if (s.status === "WAITING") {
    switch (s.type) {
      case "event": return ["waiting", "clock", `Waits for signal "${spec?.signal ?? s.name}" at ${step}${s.dueAt ? ", until" : ", without a limit"}`, s.dueAt];
      case "approval": return ["waiting", "person", `Waits for a decision at ${step}${s.dueAt ? ", until" : ", without a limit"}`, s.dueAt];
      case "wait": return ["waiting", "clock", `Waits at ${step}, until`, s.dueAt];
      case "transition": return ["waiting", "clock", `Waits for the operation that ${step} has fired; looks again`, s.dueAt];
    }
    return ["waiting", "clock", because(`${sentence(step)} failed`, s.error) + " The next attempt is due", s.dueAt];
  }
  const who = s.handler ? `no worker of handler "${s.handler}" has taken it` : "no node has taken it";
  return ["waiting", "clock", because(`${sentence(step)} is due, and ${who} yet`, s.error)];
}

function WhyRun({ run, step, spec, entry, approval, steps }: { run: Run; step?: RunStep; spec?: Spec; entry?: InboxItem; approval?: Approval; steps: RunStep[] }) {
  const [tone, icon, text, at] = reasonOf(run, step, spec);
  const cancel = run.cancelRequested && !over(run) ? " Cancellation was requested: the run is cancelled when the step in flight has ended." : "";
  const shown = entry ? entry.reason : text, open = approval && mayDecide(approval);
  return <Why tone={tone} icon={icon} entry={approval ? undefined : entry} text={<><strong>{shown}</strong>{!entry && at && <>{text.endsWith("until") && <strong> {absolute(at, false)}</strong>} <Until at={at} over="any moment now" />.</>}{cancel}{run.status === "COMPLETED" && <span class="muted"> {plural(steps.length, "visit")} of steps.</span>}</>}>
    {approval && <a class="button" href={to.approval(approval.id)}>Open the approval</a>}
    {open && <><Button class="primary" onClick={() => decide(approval, "approved")}>Approve</Button><Button class="danger" onClick={() => decide(approval, "rejected")}>Reject</Button></>}
    {step?.uncertain && !entry && <Act method="POST" path="/operations/x/resolve" class="primary" onClick={() => void resolve(run, step)}>Resolve</Act>}
  </Why>;
}

function VisitPanel({ run, s }: { run: Run; s: RunStep }) {
  return <Panel title={<>Step {s.name}{s.visit > 1 && `, visit ${s.visit}`}</>} actions={<><State of={s.uncertain ? "uncertain" : s.status} />{s.uncertain && <Act method="POST" path="/operations/x/resolve" class="small" onClick={() => void resolve(run, s)}>Resolve</Act>}</>}>
    <div class="stack">
      {s.error && <Notice tone={s.uncertain ? "uncertain" : s.status === "FAILED" ? "danger" : "waiting"} icon={s.uncertain ? "question" : "x"}><p>{sentence(s.error)}</p></Notice>}
      <Facts of={[["Type", s.type], ["Handler", s.handler ? <a class="link" href={to.handler(s.handler)}>{s.handler}</a> : undefined], ["Attempts", <Marks s={s} />], ["Holder", s.holder ? <>{s.holder}, epoch {s.epoch}, lease ends <Until at={s.until} /></> : undefined], ["Due", s.dueAt ? <Until at={s.dueAt} over="due" /> : undefined],
        ["Operation", s.holder || s.uncertain ? <Id id={`${run.id}/${s.name}/${s.visit}`} href={to.operation(`${run.id}/${s.name}/${s.visit}`)} most={50} /> : undefined],
        ["Started", <Time at={s.startedAt} none="not yet" />], ["Finished", s.finishedAt ? <>{precise(Date.parse(s.finishedAt) - Date.parse(s.startedAt ?? s.finishedAt))} later, <Time at={s.finishedAt} /></> : null]]} />
      <div class="grid"><div><h3>Input</h3><Json value={s.input} label={`Input of step ${s.name}`} /></div><div><h3>Output</h3><Json value={s.output} label={`Output of step ${s.name}`} /></div></div>
    </div>
  </Panel>;
}

interface RunAction { label: string; icon?: IconName; run: () => void; main?: boolean; danger?: boolean; key?: string }

function runActions(run: Run, step: RunStep | undefined, specs: Spec[]): RunAction[] {
  const base = p`/workflow-runs/${run.id}`, may = (name: string) => mayCall("POST", `${base}/${name}`), is = (...of: string[]) => of.includes(run.status);
  const out: RunAction[] = [];
  if (is("FAILED") && may("retry")) out.push({ label: "Retry", icon: "refresh", main: true, key: "r", run: () => void quick("POST", base + "/retry", { expectedVersion: run.version }, "The run continues at the step that failed.") });
  if (is("PAUSED") && may("resume")) out.push({ label: "Resume", icon: "play", main: true, key: "r", run: () => void quick("POST", base + "/resume", {}, "Resumed.") });
  if (is("RUNNING") && may("pause")) out.push({ label: "Pause", icon: "pause", main: true, key: "p", run: () => void quick("POST", base + "/pause", {}, "Paused: no further step begins.") });
  if (!over(run) && may("signals")) out.push({ label: "Signal", icon: "bolt", main: true, key: "s", run: () => signalRun(run, specs) });
  if (!over(run) && !run.cancelRequested && may("cancel")) out.push({ label: "Cancel", icon: "stop", danger: true, main: true, key: "c", run: () => cancelRun(run, step) });
  return out;
}

function cancelRun(run: Run, step?: RunStep): void {
  const flight = step?.holder || step?.uncertain;
  ask({ title: "Cancel the run", label: flight ? "Request the cancellation" : "Cancel the run now", danger: true, touches: 1, method: "POST", path: p`/workflow-runs/${run.id}/cancel`, send: () => ({}),
    body: <div class="stack tight"><p>Run <code>{run.id}</code> of {run.definitionId} will end, and its remaining steps will not run. Completed work is not undone.</p>
      {flight ? <p>Step <strong>{step!.name}</strong> {step!.uncertain ? "is uncertain: resolve it, and the run is then cancelled." : <>is in flight at {step!.holder}. Its holder is told, and the run is cancelled when the step has ended.</>}</p> : <p>No step is in flight, so it is cancelled at once.</p>}</div>,
    said: (r: Run) => (r.status === "CANCELLED" ? "Cancelled." : "Requested: the run is cancelled when the step in flight has ended.") });
}

function signalRun(run: Run, specs: Spec[]): void {
  const names = [...new Set(specs.flatMap(s => s.signal ?? []))];
  ask({ title: "Send a signal", label: "Send", method: "POST", path: p`/workflow-runs/${run.id}/signals`, send: v => v,
    body: <p class="muted">A signal is stored until the run waits for it. {names.length ? `The definition waits for: ${names.join(", ")}.` : "This definition waits for no signal."}</p>,
    fields: [{ name: "type", label: "Name", required: true, value: names[0] ?? "" }, { name: "payload", label: "Payload (JSON)", kind: "json", value: "{}" }, { name: "id", label: "Id", help: "Sending a signal again with the same id has no effect. Generated if empty." }],
    said: r => (r.fresh ? "The signal is stored." : "This signal was already sent.") });
}

/** resolve asks for the outcome of each effect that is not known. */
async function resolve(run: Run, s: RunStep): Promise<void> {
  const path = p`/operations/${`${run.id}/${s.name}/${s.visit}`}`;
  let o: Operation;
  try { o = await get<Operation>(path); } catch (e) { toast(<>{sentence((e as Refused).message)} <code>{(e as Refused).code}</code></>, "danger"); return; }
  const unknown = o.effects.filter(e => e.state === "begun");
  ask({ title: "Resolve the step", label: "Resolve", danger: true, touches: 1, method: "POST", path: path + "/resolve",
    body: <p>Look into the other system first: it is not known whether step <strong>{s.name}</strong> of run <code>{run.id}</code> had its effect. {o.error && sentence(o.error) + "."}</p>,
    fields: [
      ...unknown.flatMap((e, i) => [
        { name: "e" + i, label: e.name === "$body" ? "Did the step have its effect?" : `Did effect ${e.name}${e.ordinal ? " #" + e.ordinal : ""} happen?`, kind: "select" as const, required: true, options: [{ value: "", label: "choose" }, { value: "no", label: "No, it did not happen" }, { value: "yes", label: "Yes, it happened" }], help: "Key " + e.key },
        { name: "r" + i, label: "Its result (JSON), if it happened", kind: "json" as const }]),
      { name: "outcome", label: "Then", kind: "select", options: [{ value: "continue", label: "continue the step" }, { value: "success", label: "end the step with success" }, { value: "failure", label: "end the step with failure" }] }],
    send: v => ({ effects: unknown.map((e, i) => ({ name: e.name, ordinal: e.ordinal, happened: v["e" + i] === "yes", ...(v["e" + i] === "yes" && v["r" + i] !== undefined ? { result: v["r" + i] } : {}) })), ...(v.outcome === "continue" ? {} : { outcome: v.outcome }) }),
    said: "Resolved." });
}
