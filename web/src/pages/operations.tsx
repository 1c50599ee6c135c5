// Claims and operations: who has them, since when and until when, what they may have done, and how a person ends them.
import { useEffect } from "preact/hooks";
import type { Contradiction, Effect, Entity, HeldClaim, Operation, RunStep, StoredRequest } from "../api.gen";
import { may, p, query } from "../core/api";
import { useGet, usePages } from "../core/data";
import { plural, words } from "../core/format";
import { useKeys } from "../core/keyboard";
import { params, segments, to } from "../core/router";
import { Empty, Facts, Failure, Id, Loading, Notice, Panel, State, Time, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, type Field, Menu } from "../ui/dialog";
import { Choice, Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { SimpleTable, Split, Table } from "../ui/table";
import { bulk, outcomes } from "./operations-actions";
import { objectOf } from "./operate-part";

const states = [{ value: "held", label: "held" }, { value: "due", label: "due" }, { value: "uncertain", label: "uncertain" }, { value: "contradicted", label: "contradicted" }, { value: "lost", label: "handed out and lost" }];

export function Operations() {
  const id = segments.value[1], q = params.value, state = q.get("state");
  useTitle(id ? "Operation" : "Operations");
  const rows = usePages<Operation>("/operations" + query({ state, handler: q.get("handler") }), { topics: ["operations"] });
  const claims = useGet<{ items: HeldClaim[]; next: string | null }>("/claims?limit=1000", { topics: ["operations"] });
  const unread = !claims.value.value || !!claims.error.value || claims.value.value.next !== null; // then it is not known who holds the others
  const byOperation = new Map(claims.value.value?.items.map(c => [c.operation, c]));
  const may1 = may("POST /bulk");
  useEffect(() => may1 ? offer([
    { label: "Resolve all uncertain operations", icon: "question", run: () => bulk("resolve") },
    { label: "Withdraw all due operations", icon: "undo", run: () => bulk("withdraw") },
    { label: "Release all held operations", icon: "lock", run: () => bulk("release") },
  ]) : undefined, [may1]);
  const selected = (ids: string[], clear: () => void) => <>
    <Act method="POST" path="/bulk" onClick={() => bulk("resolve", ids, clear)}>Resolve</Act>
    <Act method="POST" path="/bulk" onClick={() => bulk("release", ids, clear)}>Release</Act>
    <Act method="POST" path="/bulk" onClick={() => bulk("withdraw", ids, clear)}>Withdraw</Act></>;
  return <Split
    bar={<><h1>Operations</h1><Choice name="state" label="State" options={states} /><Search name="handler" label="Handler or step" /><span class="grow" />
      <Menu label="Actions on all operations" entries={[
        { label: "Resolve all uncertain…", icon: "question", hidden: !may1, run: () => bulk("resolve") }, { label: "Withdraw all due…", icon: "undo", hidden: !may1, run: () => bulk("withdraw") }, { label: "Release all held…", icon: "lock", hidden: !may1, run: () => bulk("release") },
        curlEntry("GET", "/operations" + query({ state, handler: q.get("handler") }))]} /></>}
    list={<Table label="Operations" rows={rows} id={o => o.id} href={o => to.operation(o.id)} current={id} selection={may1 ? selected : undefined}
      empty={state || q.get("handler") ? <Empty title="No such operations">No operation matches the filters.</Empty>
        : <Empty title="Nothing is claimed" command={"holdfast fire LIFECYCLE ID STEP --as admin\nholdfast operations list"}>An operation is one claimed step of an entity. It is here while it is held by a worker or a node, while it waits for one, and while its outcome is uncertain.</Empty>}
      columns={[
        { title: "Subject", cell: o => o.subject }, { title: "State", cell: o => <><State of={o.state} />{o.contradictions?.length ? <> <State of="contradicted" tone="danger" icon="warning" /></> : null}</> },
        { title: "Handler", cell: o => o.handler || "–", wide: true },
        { title: "Holder", cell: o => byOperation.get(o.id)?.holder || <span class="muted">{unread ? "?" : "nobody"}</span> }, { title: "Requester", cell: o => byOperation.get(o.id)?.requester ?? "–", wide: true },
        { title: "Since", cell: o => <Time at={o.since} />, wide: true }, { title: "Until", cell: o => <Until at={byOperation.get(o.id)?.until ?? null} /> },
        { title: "Epoch", cell: o => o.epoch, num: true, wide: true }, { title: "Effects", cell: o => <EffectCount of={o} />, wide: true }]} />}
    beside={id ? <OperationDetail key={id} id={id} claim={byOperation.get(id)} /> : undefined} />;
}

function EffectCount({ of: o }: { of: Operation }) {
  if (o.lostHandOuts) return <>{plural(o.lostHandOuts, "lost hand-out")}</>;
  if (!o.effects.length) return <span class="muted">none</span>;
  const unknown = o.effects.filter(e => e.state === "begun").length;
  return unknown ? <State of={unknown + " unknown"} tone="uncertain" icon="question" title={plural(unknown, "effect") + " without a result"} /> : <>{o.effects.length} done</>;
}

/** effectName names an effect; the ordinal only if it has one. */
const effectName = (e: { name: string; ordinal: number }) => (e.name === "$body" ? "the whole handler" : e.name) + (e.ordinal ? ` (${e.ordinal})` : "");

function resolve(o: Operation, preset?: { effect: Effect; happened: boolean }) {
  const unknown = o.effects.filter(e => e.state === "begun");
  ask({ title: "Resolve " + o.subject, label: "Resolve", danger: true, method: "POST", path: p`/operations/${o.id}/resolve`,
    body: <><p>Step <strong>{o.handler}</strong> of <strong>{o.subject}</strong>. Look into the other system before you answer: the answers are recorded, and the operation continues or ends with them.</p></>,
    fields: [
      ...unknown.flatMap<Field>((e, i) => [
        { name: "effect" + i, label: `Effect ${effectName(e)}`, kind: "select", value: preset?.effect.key === e.key ? String(preset.happened) : "", help: "Key: " + e.key, options: [{ value: "", label: "still unknown" }, { value: "true", label: "happened" }, { value: "false", label: "did not happen" }] },
        { name: "result" + i, label: `Its result, if it happened (JSON)`, kind: "json", placeholder: "{}" }]),
      { ...outcomes, help: "To continue: the step runs again with the recorded results, or ends if nothing happened. An operation of a manual claim needs an outcome." }],
    send: v => ({ effects: unknown.flatMap((e, i) => v["effect" + i] ? [{ name: e.name, ordinal: e.ordinal, happened: v["effect" + i] === "true", ...(v["effect" + i] === "true" && v["result" + i] !== undefined ? { result: v["result" + i] } : {}) }] : []), ...(v.outcome ? { outcome: v.outcome } : {}) }),
    said: r => r?.operation ? `Recorded. The operation is ${r.operation.state}.` : "The operation has ended." });
}

const release = (o: Operation) => ask({ title: "Release " + o.subject, label: "Release", danger: true, method: "POST", path: p`/operations/${o.id}/release`, fields: [{ name: "reason", label: "Reason", help: "The audit log keeps it." }], send: v => ({ epoch: o.epoch, ...v }),
  body: <p>This ends the lease with epoch {o.epoch} of step <strong>{o.handler}</strong> on <strong>{o.subject}</strong>. Its holder can write nothing more. If an effect may have happened, the request is refused.</p>, said: "Released." });

const withdraw = (o: Operation) => ask({ title: "Withdraw " + o.subject, label: "Withdraw", danger: true, method: "POST", path: p`/operations/${o.id}/withdraw`, fields: [{ name: "reason", label: "Reason", help: "The audit log keeps it." }], send: v => v,
  body: <p>Step <strong>{o.handler}</strong> is not done, and <strong>{o.subject}</strong> returns to the status in which the step was fired. If an effect may have happened, the operation becomes uncertain instead.</p>, said: r => r?.operation ? `The operation is ${r.operation.state}.` : "Withdrawn." });

const acknowledge = (o: Operation, all: Contradiction[]) => ask({ title: "Acknowledge " + plural(all.length, "contradiction"), label: "Acknowledge", danger: true, touches: all.length, method: "POST", path: p`/operations/${o.id}/acknowledge`, send: () => ({ contradictions: all.map(c => c.id) }),
  body: <p>The result came after the lease had ended. Make sure that your records show what really happened: {all.map(effectName).join(", ")}.</p>, said: "Acknowledged." });

/** What the state means, and what a person can do. */
const why: Record<string, string> = {
  held: "A holder works on it. Its lease is renewed while it does.", due: "It has no holder: the next worker or node that polls for it takes it.",
  uncertain: "There is no record of whether an effect happened. Look into the other system, then resolve it.", ended: "It has ended.",
};

export function OperationDetail({ id, claim }: { id: string; claim?: HeldClaim }) {
  const read = useGet<Operation>(p`/operations/${id}`, { topics: ["operations"] });
  const o = read.value.value, object = o && objectOf(o);
  const entity = useGet<Entity>(object?.entity ? p`/lifecycles/${object.entity.lifecycle}/entities/${object.entity.id}` : null, { topics: ["operations"] });
  const steps = useGet<{ items: RunStep[] }>(object?.run ? p`/workflow-runs/${object.run.id}/steps` + "?limit=1000" : null, { topics: ["operations"] });
  const first = !o ? undefined : o.state === "uncertain" ? () => resolve(o) : o.state === "held" ? () => release(o) : o.state === "due" ? () => withdraw(o) : undefined;
  const permitted = may("POST /operations/{id}/resolve");
  useKeys(first && permitted ? { a: ["act on the operation", first] } : {});
  if (!o) return read.error.value ? <Detail title="Operation" close="/operations">{read.error.value.status === 404
    ? <Empty title="No such operation">An operation that has ended is shown as long as the history of its entity is kept.</Empty> : <Failure error={read.error.value} retry={read.reload} />}</Detail> : <Loading />;
  const own = entity.value.value?.claim;
  const held = own?.operation === o.id ? own : claim;
  const step = object?.run && steps.value.value?.items.findLast(s => s.name === object.run!.step);
  const path = p`/operations/${o.id}`;
  return <Detail title={o.subject || "Operation"} state={<State of={o.state} />} close="/operations" actions={<>
    {o.state === "uncertain" && <Act method="POST" path={path + "/resolve"} class="primary" icon="question" onClick={() => resolve(o)}>Resolve</Act>}
    {o.state === "held" && <Act method="POST" path={path + "/release"} class="danger" icon="lock" onClick={() => release(o)}>Release</Act>}
    {o.state === "due" && <Act method="POST" path={path + "/withdraw"} class="danger" icon="undo" onClick={() => withdraw(o)}>Withdraw</Act>}
    <Menu label="More" entries={[curlEntry("GET", path)]} /></>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    {o.contradictions?.length ? <Notice tone="danger"><p>A result came after the lease had ended. It contradicts what was recorded, and changed nothing: see below.</p></Notice> : null}
    <Notice tone={o.state === "uncertain" ? "uncertain" : o.state === "held" ? "active" : o.state === "due" ? "waiting" : "neutral"} icon={o.state === "uncertain" ? "question" : "dot"}><p>{why[o.state] ?? ""}{o.error && <> Last error: {o.error}.</>}</p></Notice>
    <Panel title="Operation"><Facts of={[
      ["Subject", !object!.href ? undefined : <><a class="link" href={object!.href}>{o.subject}</a>{object!.entity && <> · <a class="link" href={object!.href + "?view=race"}>race view</a></>}</>],
      ["Kind", words(o.kind)], ["Handler", o.handler && <a class="link" href={to.handler(o.handler)}>{o.handler}</a>],
      ["Step", held?.stepKey], ["Holder", held?.holder || step?.holder || "nobody"], ["Requester", held?.requester], ["Since", <Time at={o.since} />], ["Ended", o.ended && <><code>{o.ended.name}</code> <Time at={o.ended.at} /></>],
      ["Until", <Until at={held?.until ?? step?.until ?? null} />], ["Epoch", o.epoch], ["Lost hand-outs", o.lostHandOuts], ["Id", <Id id={o.id} most={40} />]]} /></Panel>
    <Panel title={`Effects (${o.effects.length})`} flush><SimpleTable of={o.effects} id={e => e.key} empty={<Empty title="No effects">Calls to other systems that the step records are listed here, with their keys and results.</Empty>} columns={[
      { title: "Effect", cell: e => effectName(e) }, { title: "State", cell: e => <State of={e.state === "begun" ? "unknown" : e.state === "notDone" ? "did not happen" : "happened"} tone={e.state === "begun" ? "uncertain" : e.state === "done" ? "ok" : "neutral"} icon={e.state === "begun" ? "question" : e.state === "done" ? "check" : "undo"} /> },
      { title: "Result", cell: e => (e.result === undefined ? <span class="muted">–</span> : <code>{JSON.stringify(e.result)}</code>) }, { title: "Key", cell: e => <Id id={e.key} most={20} /> },
      { title: "Resolve", cell: e => o.state === "uncertain" && e.state === "begun" ? <span class="row"><Act class="small" method="POST" path={path + "/resolve"} onClick={() => resolve(o, { effect: e, happened: true })}>Happened</Act><Act class="small" method="POST" path={path + "/resolve"} onClick={() => resolve(o, { effect: e, happened: false })}>Did not happen</Act></span> : <span class="muted">–</span> }]} /></Panel>
    {o.contradictions?.length ? <Panel title={`Contradictions (${o.contradictions.length})`} flush actions={<Act method="POST" path={path + "/acknowledge"} onClick={() => acknowledge(o, o.contradictions!)}>Acknowledge all</Act>}>
      <SimpleTable of={o.contradictions} id={c => c.id} columns={[
        { title: "Effect", cell: effectName }, { title: "The late holder says", cell: c => <State of={c.state === "done" ? "it happened" : "unknown"} tone={c.state === "done" ? "danger" : "uncertain"} icon={c.state === "done" ? "warning" : "question"} /> },
        { title: "Result", cell: c => <code>{JSON.stringify(c.result) ?? "–"}</code> }, { title: "At", cell: c => <Time at={c.at} /> },
        { title: "Do", cell: c => <Act class="small" method="POST" path={path + "/acknowledge"} onClick={() => acknowledge(o, [c])}>Acknowledge</Act> }, { title: "Epoch", cell: c => c.epoch, num: true }, { title: "Node", cell: c => <a href={to.node(c.node)}>{c.node}</a> }]} /></Panel> : null}
    {may("GET /requests") && <Answers operation={o.id} />}
  </Detail>;
}

/** What the callers of an operation were told. */
function Answers({ operation }: { operation: string }) {
  const read = useGet<{ items: StoredRequest[] }>("/requests" + query({ operation, limit: 100 }), { topics: ["operations"] });
  const all = read.value.value?.items;
  return <Panel title="Requests" flush>{!all ? (read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />)
    : <SimpleTable of={all} id={r => r.id} empty={<Empty title="No stored requests">A request with an Idempotency-Key is stored with its response for 24 hours.</Empty>} columns={requestColumns} />}</Panel>;
}

/** The columns of stored requests. */
export const requestColumns = [
  { title: "Route", cell: (r: StoredRequest) => r.route }, { title: "State", cell: (r: StoredRequest) => <State of={r.state === "inFlight" ? "in flight" : r.state === "operation" ? "outcome of the operation" : "answered"} tone={r.state === "answered" ? "ok" : "active"} icon={r.state === "answered" ? "check" : "clock"} /> },
  { title: "Status", cell: (r: StoredRequest) => r.status || "–", num: true }, { title: "Received", cell: (r: StoredRequest) => <Time at={r.at} /> },
  { title: "Response", cell: (r: StoredRequest) => r.withheld ? <span class="muted">withheld</span> : r.response === undefined ? <span class="muted">–</span> : <code>{JSON.stringify(r.response)}</code> },
];

