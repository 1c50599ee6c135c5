// The audit log: who did what and when, as it was before and after.
import type { AuditEntry } from "../api.gen";
import { query } from "../core/api";
import { useGet, usePages } from "../core/data";
import { short } from "../core/format";
import { params, segments, setParams } from "../core/router";
import { Button, Empty, Facts, Failure, Icon, Id, Loading, Notice, Panel, Time, useTitle } from "../ui/basic";
import { curlEntry, Menu } from "../ui/dialog";
import { Range, Search, since } from "../ui/filter";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Actor, auditSubject, DateFilter } from "./operate-part";
import { Difference } from "../ui/diff";

const page = (e: AuditEntry) => "/audit/" + encodeURIComponent(e.id);

function filters() {
  const q = params.value;
  return { actor: q.get("actor"), action: q.get("action"), subject: q.get("subject"), since: q.get("since") || since(), until: q.get("until") };
}

export function Audit() {
  useTitle("Audit log");
  const id = segments.value[1], f = filters(), filtered = Object.values(f).some(Boolean);
  const rows = usePages<AuditEntry>("/audit" + query(f));
  const found = id === undefined ? undefined : rows.value.value?.find(e => e.id === id);
  const clear = () => setParams({ actor: "", action: "", subject: "", since: "", until: "", range: "" });
  return <Split bar={<><h1>Audit log</h1><Search name="action" label="Action" hint="Such as key.create" /><Search name="actor" label="Actor" /><Search name="subject" label="Subject" hint="Such as handler/mail" /><Range />{id === undefined && <><DateFilter name="since" label="From" /><DateFilter name="until" label="Until" /></>}
      {filtered && <Button class="quiet" onClick={clear}>Clear</Button>}<span class="grow" /><Button icon="refresh" onClick={rows.reload}>Reload</Button>
      <a class="button" download="audit.ndjson" href={"/api/v1/audit" + query({ ...f, format: "ndjson" })}><Icon name="down" />Export</a><Menu label="More" entries={[curlEntry("GET", "/audit" + query(f)), { ...curlEntry("GET", "/audit" + query({ ...f, format: "ndjson" })), label: "Copy the export as curl" }]} /></>}
    list={<Table label="Audit log" rows={rows} id={e => e.id} href={page} current={id}
      empty={filtered ? <Empty title="No such entries">No entry matches the filters. They must match the whole actor, action or subject.</Empty> : <Empty title="No administrative actions yet" command={"holdfast handlers put Charge --safety journaled\nholdfast audit"}>Changes of keys, webhooks, handlers, lifecycles and reactions, repairs, resolutions and bulks are recorded here in the transaction of the action, for ever.</Empty>}
      columns={[
        { title: "Action", cell: e => e.action }, { title: "Subject", cell: e => <Subject of={e.subject} /> }, { title: "Actor", cell: e => <Actor of={e.actor} none="a program" /> }, { title: "When", cell: e => <Time at={e.at} /> },
        { title: "Change", cell: e => <span class="muted">{summary(e)}</span>, wide: true }, { title: "Request", cell: e => (e.requestId ? <Id id={e.requestId} most={16} /> : "–"), wide: true }]} />}
    beside={id === undefined ? undefined : found ? <Entry e={found} /> : rows.value.value ? <Elsewhere key={id} id={id} /> : <Loading />} />;
}

function Subject({ of }: { of: string }) {
  const href = auditSubject(of);
  return href ? <a class="link" href={href} title={of}>{short(of, 28)}</a> : <span title={of}>{short(of, 28)}</span>;
}

/** summary names the fields that changed. */
function summary(e: AuditEntry): string {
  if (e.before === undefined && e.after === undefined) return "–";
  const object = (v: unknown) => (v && typeof v === "object" && !Array.isArray(v) ? (v as Record<string, unknown>) : {});
  const a = object(e.before), b = object(e.after);
  if (e.before === undefined || e.before === null) return "new";
  if (e.after === undefined || e.after === null) return "removed";
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(k => JSON.stringify(a[k]) !== JSON.stringify(b[k]));
  return names.length ? names.join(", ") : "no difference";
}

function Entry({ e }: { e: AuditEntry }) {
  const both = e.before !== undefined && e.after !== undefined && e.before !== null && e.after !== null;
  return <Detail title={e.action} close="/audit">
    <Panel title="Action"><Facts of={[["Subject", auditSubject(e.subject) ? <a class="link" href={auditSubject(e.subject)}>{e.subject}</a> : e.subject], ["Actor", <Actor of={e.actor} none="a program without a name" />], ["At", <Time at={e.at} />], ["Request", e.requestId.startsWith("bulk:") ? <a class="link" href={"/bulk/" + e.requestId.slice(5)}>{e.requestId}</a> : e.requestId ? <Id id={e.requestId} most={40} /> : undefined], ["Id", <Id id={e.id} most={40} />]]} /></Panel>
    <Panel title={both ? "Before and after" : e.after !== undefined ? "After" : "Before"}>{e.before === undefined && e.after === undefined ? <p class="muted">The entry has no documents.</p> : <Difference before={e.before} after={e.after} label="Before and after" />}</Panel>
    <Panel title="Look further"><ul class="stack tight"><li><a class="link" href={"/audit?subject=" + encodeURIComponent(e.subject)}>Everything about {e.subject}</a></li>{e.actor && <li><a class="link" href={"/audit?actor=" + encodeURIComponent(e.actor)}>Everything by {e.actor}</a></li>}<li><a class="link" href={"/audit?action=" + encodeURIComponent(e.action)}>All entries of {e.action}</a></li></ul></Panel>
  </Detail>;
}

/** Elsewhere shows an entry that the list has not loaded. The id of an entry begins with its time. */
function Elsewhere({ id }: { id: string }) {
  const at = parseInt(id.replaceAll("-", "").slice(0, 12), 16), ok = /^[0-9a-f-]{36}$/.test(id) && at > 0 && at < 8.64e15;
  const read = useGet<{ items: AuditEntry[] }>(ok ? "/audit" + query({ since: new Date(at - 60_000).toISOString(), until: new Date(at + 60_000).toISOString(), limit: 1000 }) : null);
  const found = read.value.value?.items.find(e => e.id === id);
  if (found) return <Entry e={found} />;
  if (ok && !read.value.value) return read.error.value ? <Detail title="Entry" close="/audit"><Failure error={read.error.value} retry={read.reload} /></Detail> : <Loading />;
  return <Detail title="Entry" close="/audit"><Notice tone="neutral"><p>There is no entry with the id <code>{id}</code>.</p></Notice></Detail>;
}
