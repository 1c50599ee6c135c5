// API keys: who may do what, and until when.
import { useEffect } from "preact/hooks";
import type { CreatedKey, Key } from "../api.gen";
import { may, p, session } from "../core/api";
import { useGet, usePages } from "../core/data";
import { go, params, segments, to } from "../core/router";
import { Empty, Facts, Failure, Id, Loading, Notice, Panel, State, Time, type Tone, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { Choice, Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Actor, lengths, list, parts, tellSecret } from "./operate-part";

type Used = Key & { lastUsedAt?: string | null };
const stateOf = (k: Key) => (k.revokedAt ? "revoked" : k.expiresAt && Date.parse(k.expiresAt) <= Date.now() ? "expired" : "valid");
const roleTone: Record<string, Tone> = { admin: "danger", operate: "waiting", worker: "active", read: "neutral" };
const uses = "Send it as Authorization: Bearer …";

/** What a role permits, as docs/http.md has it. */
const permits: Record<string, string> = {
  read: "reads everything but keys, the audit and stored requests", worker: "reads, claims and ends tasks and streams, journals effects",
  operate: "does what a worker does, fires steps, changes runs and batches, repairs", admin: "does everything: also handlers, reactions, lifecycles, webhooks, keys and the audit",
};

const create = (done: () => void) => ask({ title: "Create an API key", label: "Create", method: "POST", path: "/keys",
  fields: [{ name: "name", label: "Name", required: true, help: "What or who uses it." }, { name: "role", label: "Role", kind: "select", options: ["read", "worker", "operate", "admin"].map(value => ({ value, label: `${value}: ${permits[value]}` })) },
    { name: "requesters", label: "Requesters", placeholder: "admin, system", help: "The key may act for these; * for all. Without any, it cannot fire steps." }, { name: "handlers", label: "Handlers", help: "For workers: the key may claim tasks of these only. Empty: all." },
    { name: "lifetimeMs", label: "Valid for", kind: "select", options: lengths([["no limit", 0], ["1 day", 86400e3], ["30 days", 2592e6], ["90 days", 7776e6], ["1 year", 31536e6]]) }, { name: "rate", label: "Requests per second", kind: "number", help: "Empty: the limit of the server." }],
  send: v => ({ role: v.role, ...(v.name ? { name: v.name } : {}), ...(parts(v.requesters).length ? { requesters: parts(v.requesters) } : {}), ...(parts(v.handlers).length ? { handlers: parts(v.handlers) } : {}), ...(Number(v.lifetimeMs) ? { lifetimeMs: Number(v.lifetimeMs) } : {}), ...(v.rate ? { rate: v.rate } : {}) }),
  said: "Created.", done: (r: CreatedKey) => { done(); go(to.key(r.id)); tellSecret("The new API key", r.secret, uses); } });

const rotate = (k: Key, done: () => void) => ask({ title: "Rotate the key " + (k.name || k.id), label: "Rotate", danger: true, method: "POST", path: p`/keys/${k.id}/rotate`,
  fields: [{ name: "overlapMs", label: "The old key stays valid for", kind: "select", value: "3600000", options: lengths([["not at all", 0], ["1 minute", 60e3], ["1 hour", 3600e3], ["1 day", 86400e3], ["7 days", 604800e3]]) }],
  send: v => ({ overlapMs: Number(v.overlapMs ?? 0) }), body: <p>A new key with the same permissions replaces <strong>{k.name || k.id}</strong>. It can repeat the requests of the old one.</p>, said: "Rotated.", done: (r: CreatedKey) => { done(); go(to.key(r.id)); tellSecret("The new API key", r.secret, uses); } });

function revoke(k: Key, done: () => void) {
  const s = session.value;
  ask({ title: `Revoke the key ${k.name || k.id}`, label: "Revoke " + (k.name || "the key"), danger: true, method: "DELETE", path: p`/keys/${k.id}`, said: "Revoked.", done,
    body: <><p>Key <strong>{k.name || "without a name"}</strong> (<code>{k.id}</code>, role {k.role}) is refused by every node within 5 seconds, for ever.</p>{s && s.key?.id === k.id && <Notice tone="danger"><p>This is the key that you have logged in with: you will be logged out.</p></Notice>}</> });
}

export function Keys() {
  useTitle("API keys");
  const id = segments.value[1], q = params.value, admin = may("POST /keys");
  const rows = usePages<Used>("/keys");
  const text = (q.get("q") ?? "").toLowerCase(), role = q.get("role"), state = q.get("state");
  const shown = rows.value.value?.filter(k => (!text || k.name.toLowerCase().includes(text) || k.id.startsWith(text)) && (!role || k.role === role) && (!state || stateOf(k) === state));
  const used = rows.value.value?.some(k => k.lastUsedAt !== undefined);
  useEffect(() => admin ? offer([{ label: "Create an API key", icon: "key", run: () => create(rows.reload) }]) : undefined, [admin]);
  return <Split bar={<><h1>API keys</h1><Choice name="role" label="Role" options={["read", "worker", "operate", "admin"]} /><Choice name="state" label="State" options={["valid", "expired", "revoked"]} /><Search name="q" label="Name or id" /><span class="grow" /><Act method="POST" path="/keys" icon="plus" onClick={() => create(rows.reload)}>Create</Act><Menu label="More" entries={[curlEntry("GET", "/keys")]} /></>}
    list={<Table label="API keys" rows={{ ...rows, value: { get value() { return shown; } } as typeof rows.value }} id={k => k.id} href={k => to.key(k.id)} current={id}
      empty={text || role || state ? <Empty title="No such key">No key matches the filters.</Empty> : <Empty title="No API keys" command="holdfast keys create --db sqlite:holdfast.db --role admin --requester '*'">A server started with "holdfast serve" asks every caller for a key. This one runs without keys, or has none yet.</Empty>}
      columns={[
        { title: "Name", cell: k => k.name || <span class="muted">{k.id.slice(0, 8)}…</span> }, { title: "Role", cell: k => <State of={k.role} tone={roleTone[k.role]} icon="key" /> }, { title: "State", cell: k => <State of={stateOf(k)} /> },
        { title: "Requesters", cell: k => list(k.requesters), wide: true }, { title: "Handlers", cell: k => list(k.handlers, "all"), wide: true }, { title: "Rate", cell: k => (k.rate ? k.rate + "/s" : <span class="muted">default</span>), num: true, wide: true },
        ...(used ? [{ title: "Last use", cell: (k: Used) => <Time at={k.lastUsedAt} none="never" /> }] : []), { title: "Expires", cell: k => <Time at={k.expiresAt} none="never" />, wide: true }, { title: "Created", cell: k => <Time at={k.createdAt} />, wide: true }]} />}
    beside={id ? <KeyDetail key={id} id={id} reload={rows.reload} /> : undefined} />;
}

function KeyDetail({ id, reload }: { id: string; reload: () => void }) {
  const read = useGet<Used>(p`/keys/${id}`);
  const k = read.value.value, state = k && stateOf(k);
  if (!k) return read.error.value ? <Detail title="API key" close="/keys"><Failure error={read.error.value} retry={read.reload} /></Detail> : <Loading />;
  const changed = () => { reload(); read.reload(); };
  return <Detail title={k.name || k.id} state={<State of={state!} />} close="/keys" actions={<>
    {state === "valid" && <><Act method="POST" path={p`/keys/${id}/rotate`} icon="refresh" onClick={() => rotate(k, reload)}>Rotate</Act>
      <Act method="DELETE" path={p`/keys/${id}`} class="danger" icon="x" onClick={() => revoke(k, changed)}>Revoke</Act></>}<Menu label="More" entries={[curlEntry("GET", p`/keys/${id}`)]} /></>}>
    <Panel title="Key"><Facts of={[["Role", <State of={k.role} tone={roleTone[k.role]} icon="key" />], ["This key", permits[k.role]], ["Requesters", list(k.requesters, "none: it cannot fire steps")], ["Handlers", list(k.handlers, "all")], ["Rate", k.rate ? `${k.rate} requests per second` : "the limit of the server"], ["Workspace", k.workspace],
      ["Last use", k.lastUsedAt === undefined ? undefined : <Time at={k.lastUsedAt} none="never" />], ["Expires", k.expiresAt ? <Until at={k.expiresAt} over="expired" /> : "never"], ["Revoked", k.revokedAt ? <Time at={k.revokedAt} /> : undefined], ["Created", <><Time at={k.createdAt} /> by <Actor of={k.createdBy} /></>], ["Id", <Id id={k.id} most={40} />]]} /></Panel>
    <Panel title="Look further"><ul class="stack tight"><li><a class="link" href={"/audit?actor=key:" + k.id}>What this key changed, in the audit log</a></li><li><a class="link" href={"/audit?subject=key/" + k.id}>Changes of this key, in the audit log</a></li></ul></Panel>
  </Detail>;
}
