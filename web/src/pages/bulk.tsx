// Bulks: one action on many objects, its progress, and the result for each.
import { useEffect } from "preact/hooks";
import type { Bulk as BulkDoc, BulkMember, NewBulk } from "../api.gen";
import { may, p, query } from "../core/api";
import { useGet, usePages } from "../core/data";
import { number, plural, sentence, words } from "../core/format";
import { params, segments, to } from "../core/router";
import { Empty, Facts, Failure, Id, Loading, Notice, Panel, State, Time, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { Choice } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Actor, bulkNoun, startBulk } from "./operate-part";

const actions = ["run.retry", "run.cancel", "run.pause", "run.resume", "reaction.unblock", "reaction.skip", "operation.release", "operation.resolve", "operation.withdraw"];
const topics = ["bulks"];

/** actionText writes run.retry as "retry runs". */
const actionText = (a: string) => { const [what, verb] = a.split("."); return sentence(`${verb} ${bulkNoun(what)}s`); };

const start = () => startBulk({ title: "Start a bulk", label: "Start on", danger: true, body: "The first step is a dry run: it says what the bulk would act on, and changes nothing.",
  fields: [{ name: "action", label: "Action", kind: "select", options: actions.map(a => ({ value: a, label: actionText(a) })) },
    { name: "filter", label: "Filter (JSON)", kind: "json", value: "{}", required: true, help: "Runs: status, definitionId, since, until. Streams: reaction, stream, source, blocked. Operations: lifecycle, definitionId, since, until." },
    { name: "happened", label: "To resolve: the unknown effects", kind: "select", options: [{ value: "", label: "leave unknown" }, { value: "true", label: "happened" }, { value: "false", label: "did not happen" }] },
    { name: "outcome", label: "To resolve: the outcome", kind: "select", options: [{ value: "", label: "continue" }, { value: "success", label: "success" }, { value: "failure", label: "failure" }, { value: "invalid", label: "invalid" }] },
    { name: "reason", label: "Reason, to release or withdraw" }],
  make: v => ({ action: v.action, filter: v.filter, ...(v.happened ? { happened: v.happened === "true" } : {}), ...(v.outcome ? { outcome: v.outcome } : {}), ...(v.reason ? { reason: v.reason } : {}) }) as NewBulk });

export function Bulk() {
  useTitle("Bulk actions");
  const id = segments.value[1], permitted = may("POST /bulk");
  const rows = usePages<BulkDoc>("/bulk", { topics });
  useEffect(() => permitted ? offer([{ label: "Start a bulk", icon: "list", run: start }]) : undefined, [permitted]);
  return <Split bar={<><h1>Bulk actions</h1><span class="grow" /><Act method="POST" path="/bulk" icon="plus" onClick={start}>Start a bulk</Act><Menu label="More" entries={[curlEntry("GET", "/bulk")]} /></>}
    list={<Table label="Bulk actions" rows={rows} id={b => b.id} href={b => to.bulk(b.id)} current={id}
      empty={<Empty title="No bulks" command="holdfast bulk retry-runs --definition NAME@VERSION --dry-run">One action on many objects is a bulk. It runs in the background, and its result for each object is listed here.</Empty>}
      columns={[
        { title: "Action", cell: b => actionText(b.action) }, { title: "Status", cell: b => <State of={b.status} /> }, { title: "Done", cell: b => `${number(b.done)} of ${number(b.total)}`, num: true },
        { title: "Refused", cell: b => (b.refused ? <State of="refused" title={plural(b.refused, "object")} /> : <span class="muted">0</span>), wide: true }, { title: "Cancelled", cell: b => number(b.cancelled), num: true, wide: true },
        { title: "By", cell: b => <Actor of={b.actor} />, wide: true }, { title: "Started", cell: b => <Time at={b.createdAt} /> }]} />}
    beside={id ? <BulkDetail key={id} id={id} /> : undefined} />;
}

/** The page of a member, by the kind of its bulk. */
function memberPage(action: string, id: string): string {
  if (action.startsWith("run.")) return to.run(id);
  if (action.startsWith("operation.")) return to.operation(id);
  const cut = id.indexOf("/");
  return to.reaction(cut > 0 ? id.slice(0, cut) : id);
}

function BulkDetail({ id }: { id: string }) {
  const status = params.value.get("member");
  const read = useGet<BulkDoc>(p`/bulk/${id}`, { topics });
  const members = usePages<BulkMember>(p`/bulk/${id}/members` + query({ status }), { topics });
  const b = read.value.value;
  if (!b) return read.error.value ? <Detail title="Bulk" close="/bulk"><Failure error={read.error.value} retry={read.reload} /></Detail> : <Loading />;
  const live = b.status === "PENDING" || b.status === "RUNNING";
  const cancel = () => ask({ title: "Cancel this bulk", label: "Cancel the bulk", danger: true, method: "POST", path: p`/bulk/${id}/cancel`, send: () => ({}), body: <p>{plural(b.pending, "pending object")} will not be acted on. What was done to the others is not undone.</p>, said: "Cancelled." });
  const parts: [string, number, string][] = [["done", b.done, "ok"], ["refused", b.refused, "danger"], ["cancelled", b.cancelled, "neutral"], ["running", b.running, "active"], ["pending", b.pending, "waiting"]];
  return <Detail title={actionText(b.action)} state={<State of={b.status} />} close="/bulk" actions={<>{live && !b.cancelRequested && <Act method="POST" path={p`/bulk/${id}/cancel`} class="danger" icon="stop" onClick={cancel}>Cancel</Act>}<Menu label="More" entries={[curlEntry("GET", p`/bulk/${id}`)]} /></>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    <div class="stack tight"><div class="progress" role="img" aria-label={parts.map(([n, v]) => `${v} ${n}`).join(", ")}>{b.total > 0 && parts.map(([n, v, tone]) => <i key={n} class={"tone-" + tone} style={{ width: (100 * v) / b.total + "%" }} />)}</div>
      <p class="muted">{parts.filter(([, v]) => v).map(([n, v]) => `${number(v)} ${n}`).join(" · ") || "It has no members"}</p></div>
    <Panel title="Bulk"><Facts of={[
      ["Members", number(b.total)], ["Selected by", b.filter ? <code>{JSON.stringify(b.filter)}</code> : "ids"], ["Answer", b.happened === undefined ? undefined : b.happened ? "the effects happened" : "the effects did not happen"], ["Outcome", b.outcome], ["Reason", b.reason],
      ["By", <Actor of={b.actor} />], ["Started", <Time at={b.createdAt} />], ["Last change", <Time at={b.updatedAt} />], ["Request", b.requestId ? <Id id={b.requestId} most={40} /> : undefined], ["Audit", may("GET /audit") ? <a class="link" href={"/audit?subject=bulk/" + b.id}>entries of this bulk</a> : undefined], ["Id", <Id id={b.id} most={40} />]]} /></Panel>
    <Panel title="Members" flush actions={<Choice name="member" label="Result" options={["pending", "waiting", "running", "done", "refused", "cancelled"]} />}>
      <Table label="Members" rows={members} keys={false} height="420px" id={m => m.id} empty={<Empty title="No members">{status ? `No member is ${words(status)}.` : "The filter selected nothing."}</Empty>} columns={[
        { title: "Object", cell: m => <Id id={m.id} href={memberPage(b.action, m.id)} most={40} /> }, { title: "Result", cell: m => <State of={m.status ?? ""} /> }, { title: "Was", cell: m => m.state ? <State of={m.state} /> : "–" },
        { title: "Why", cell: m => (m.code ? <span title={m.message}><code>{m.code}</code> {m.message}</span> : "–") }]} /></Panel>
  </Detail>;
}

