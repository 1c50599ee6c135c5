// Approvals: what runs wait for a person to decide.
import { useEffect } from "preact/hooks";
import type { Approval } from "../api.gen";
import { may, mayActAs, p, query } from "../core/api";
import { useGet, usePages } from "../core/data";
import { useKeys } from "../core/keyboard";
import { about } from "../core/live";
import { params, segments, setParams, to } from "../core/router";
import { Button, Empty, Failure, Facts, Icon, Id, Json, Loading, Notice, Panel, State, Time, Until, useTitle } from "../ui/basic";
import { ask, curlEntry, Menu } from "../ui/dialog";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Shown } from "./work-part";

/** mayDecide reports whether the session may decide an approval: its role permits it, and its key may act for one of the requesters. */
export const mayDecide = (a: Approval) => a.status === "pending" && may("POST /approvals/{id}/decide") && (a.requesters.length === 0 || a.requesters.some(mayActAs));

const verbs = { approved: "Approve", rejected: "Reject", edited: "Approve with changes" } as const;

/** decide asks for a name, and for the changed content if the decision is edited. Only the first decision counts. */
export function decide(a: Approval, decision: keyof typeof verbs): void {
  ask({ title: verbs[decision], label: verbs[decision], danger: decision === "rejected", method: "POST", path: p`/approvals/${a.id}/decide`,
    body: <div class="stack tight"><p><strong>{a.prompt}</strong></p><p class="muted">Step {a.step} of run <code>{a.runId}</code>. Only the first decision counts, and it cannot be taken back.</p></div>,
    fields: [
      ...(decision === "edited" ? [{ name: "content", label: "Content (JSON)", kind: "json" as const, required: true, value: JSON.stringify(a.content ?? {}, null, 2), help: "The run continues with this content." }] : []),
      { name: "by", label: "Your name", help: "Shown beside the decision. Optional." }],
    send: v => ({ decision, ...v }), said: decision === "rejected" ? "Rejected." : "Approved." });
}

export function Approvals() {
  useTitle("Approvals");
  const q = params.value, id = segments.value[1], status = q.get("status") ?? "pending", run = q.get("run");
  const rows = usePages<Approval>("/approvals" + query({ status: status === "all" ? "" : status, runId: run }), { topics: ["approvals"], when: m => !!m.state?.approvals || about("run")(m) });
  return <Split bar={<><h1>Approvals</h1><Shown rows={rows} one="approval" />
    <select aria-label="Status" value={status} onChange={e => setParams({ status: e.currentTarget.value === "pending" ? "" : e.currentTarget.value })}>{["pending", "approved", "edited", "rejected", "expired", "all"].map(s => <option key={s} value={s}>{s === "all" ? "Status: all" : s}</option>)}</select>
    {run && <span class="row">Run <Id id={run} href={to.run(run)} /><a class="button quiet icon-only" href="/approvals" aria-label="Approvals of all runs"><Icon name="x" /></a></span>}
    <span class="grow" /><Menu label="More" entries={[curlEntry("GET", "/approvals" + query({ status: status === "all" ? "" : status }))]} /></>}
    list={<Table label="Approvals" rows={rows} id={a => a.id} href={a => to.approval(a.id)} current={id}
      empty={status === "pending" ? <Empty title="No decision is pending" command={`holdfast runs approvals`}>When a run reaches a step of the type approval, its question appears here.</Empty> : <Empty title={`No approval is ${status}`}>Approvals are kept as long as their runs.</Empty>}
      columns={[
        { title: "Prompt", cell: a => a.prompt || <span class="muted">no prompt</span> }, { title: "Status", cell: a => <State of={a.status} /> }, { title: "For", cell: a => a.requesters.join(", ") || <span class="muted">anyone</span>, wide: true },
        { title: "Run", cell: a => <Id id={a.runId} href={to.run(a.runId)} />, wide: true },
        { title: status === "pending" ? "Until" : "Decided", cell: a => a.status === "pending" ? (a.expiresAt ? <Until at={a.expiresAt} over="expires now" /> : <span class="muted">no limit</span>) : <><Time at={a.decidedAt} none="" />{a.status === "expired" && <Time at={a.expiresAt} />}{(a.label || a.by) && <span class="muted"> by {a.label || a.by}</span>}</> },
        { title: "Asked", cell: a => <Time at={a.createdAt} />, wide: true }]} />}
    beside={id ? <ApprovalDetail key={id} id={id} /> : undefined} />;
}

function ApprovalDetail({ id }: { id: string }) {
  const read = useGet<Approval>(p`/approvals/${id}`, { topics: ["approvals"], when: m => !!m.state?.approvals || about("run")(m) });
  const a = read.value.value;
  const open = !!a && mayDecide(a);
  useKeys(open ? { a: ["approve", () => decide(a, "approved")], r: ["reject", () => decide(a, "rejected")], e: ["approve with changes", () => decide(a, "edited")] } : {});
  useEffect(() => offer(open ? (["approved", "edited", "rejected"] as const).map(d => ({ label: verbs[d], run: () => decide(a, d) })) : []), [open, id]);
  if (!a) return <Detail title="Approval" close="/approvals">{read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />}</Detail>;
  return <Detail title={a.prompt || "Approval"} state={<State of={a.status} />} close="/approvals" actions={<Menu label="More" entries={[curlEntry("GET", p`/approvals/${id}`), { ...curlEntry("POST", p`/approvals/${id}/decide`, { decision: "approved" }), label: "Copy the approval as curl", hidden: !open }]} />}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    {a.status === "pending" ? open
      ? <div class="row wrap"><Button class="primary" icon="check" onClick={() => decide(a, "approved")}>Approve</Button><Button icon="flag" onClick={() => decide(a, "edited")}>Approve with changes</Button><Button class="danger" icon="x" onClick={() => decide(a, "rejected")}>Reject</Button></div>
      : <Notice tone="neutral" icon="lock"><p>{may("POST /approvals/{id}/decide") ? `Only a key that may act for ${a.requesters.join(" or ")} can decide this.` : "The role of this session cannot decide approvals."}</p></Notice>
      : <Notice tone={a.status === "rejected" ? "danger" : a.status === "expired" ? "waiting" : "ok"} icon={a.status === "rejected" ? "x" : a.status === "expired" ? "clock" : "check"}><p>{a.status === "expired" ? "Nobody decided in time." : <>{a.status === "rejected" ? "Rejected" : a.status === "edited" ? "Approved with changes" : "Approved"} by {a.label || a.by || "somebody"} <Time at={a.decidedAt} />.</>}</p></Notice>}
    <Facts of={[["Run", <Id id={a.runId} href={to.run(a.runId)} most={42} />], ["Step", <>{a.step}{a.visit > 1 && `, visit ${a.visit}`}</>], ["Who may decide", a.requesters.length ? a.requesters.join(", ") : "any key that may decide approvals"],
      ["Until", a.expiresAt ? <><Until at={a.expiresAt} over={a.status === "pending" ? "expires now" : "over"} /></> : "no limit"], ["Asked", <Time at={a.createdAt} />],
      ["Decided", a.decidedAt ? <><Time at={a.decidedAt} /> by {a.label || a.by}{a.label && a.by && a.label !== a.by && <span class="muted"> ({a.by})</span>}</> : undefined], ["Id", <Id id={a.id} most={40} />]]} />
    <Panel title="Content">{a.content === null || a.content === undefined ? <p class="muted">This approval has no content beside its prompt.</p> : <Json value={a.content} label="Content of the approval" />}</Panel>
  </Detail>;
}
