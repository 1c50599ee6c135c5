// Secrets: named values that handlers, webhooks and http steps refer to. No request returns a value.
import { useEffect } from "preact/hooks";
import type { Secret } from "../api.gen";
import { may, p } from "../core/api";
import { useGet, usePages } from "../core/data";
import { number } from "../core/format";
import { go, segments, to } from "../core/router";
import { Empty, Facts, Failure, Loading, Panel, Time, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, type Field, Menu } from "../ui/dialog";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Actor, lengths } from "./operate-part";

const value: Field = { name: "value", label: "Value", kind: "password", required: true, help: "8 to 4096 printable ASCII characters. It cannot be read again." };

const create = (done: () => void) => ask({ title: "Create a secret", label: "Create", method: "PUT", path: v => p`/secrets/${v.name ?? "NAME"}`,
  fields: [{ name: "name", label: "Name", required: true, help: "Handlers, webhooks and http steps refer to it as ${secret:NAME}." }, value],
  send: v => ({ value: v.value, expectedVersion: 0 }), said: "Created.", done: (s: Secret) => { done(); go(to.secret(s.name)); } });

const replace = (s: Secret, done: () => void) => ask({ title: "Replace the value of " + s.name, label: "Replace", danger: true, method: "PUT", path: p`/secrets/${s.name}`,
  fields: [value, { name: "overlapMs", label: "Sign with the old value too for", kind: "select", value: "86400000", options: lengths([["not at all", 0], ["1 hour", 3600e3], ["1 day", 86400e3], ["7 days", 604800e3], ["30 days", 2592e6]]) }],
  send: v => ({ value: v.value, overlapMs: Number(v.overlapMs ?? 0), expectedVersion: s.version }), body: <p>The next call that refers to <strong>{s.name}</strong> uses the new value.</p>, said: "Replaced.", done });

const remove = (s: Secret, done: () => void) => ask({ title: "Delete the secret " + s.name, label: "Delete the secret", danger: true, method: "DELETE", path: p`/secrets/${s.name}`,
  body: <p>This deletes <strong>{s.name}</strong>. If a handler or a webhook refers to it, the request is refused.</p>, said: "Deleted.", done: () => { done(); go("/secrets"); } });

export function Secrets() {
  useTitle("Secrets");
  const name = segments.value[1], admin = may("PUT /secrets/{name}");
  const rows = usePages<Secret>("/secrets");
  useEffect(() => admin ? offer([{ label: "Create a secret", icon: "lock", run: () => create(rows.reload) }]) : undefined, [admin]);
  return <Split bar={<><h1>Secrets</h1><span class="grow" /><Act method="PUT" path="/secrets/NAME" icon="plus" onClick={() => create(rows.reload)}>Create</Act><Menu label="More" entries={[curlEntry("GET", "/secrets")]} /></>}
    list={<Table label="Secrets" rows={rows} id={s => s.name} href={s => to.secret(s.name)} current={name}
      empty={<Empty title="No secrets" command="holdfast secrets set NAME">A secret is a named value that the server sends in headers or signs with, and that no request returns.</Empty>}
      columns={[{ title: "Name", cell: s => s.name }, { title: "Version", cell: s => number(s.version), num: true }, { title: "Updated", cell: s => <Time at={s.updatedAt} /> }, { title: "By", cell: s => <Actor of={s.updatedBy} />, wide: true }]} />}
    beside={name ? <SecretDetail key={name} name={name} reload={rows.reload} /> : undefined} />;
}

function SecretDetail({ name, reload }: { name: string; reload: () => void }) {
  const read = useGet<Secret>(p`/secrets/${name}`), s = read.value.value;
  if (!s) return read.error.value ? <Detail title={name} close="/secrets"><Failure error={read.error.value} retry={read.reload} /></Detail> : <Loading />;
  const changed = () => { reload(); read.reload(); };
  return <Detail title={s.name} close="/secrets" actions={<>
    <Act method="PUT" path={p`/secrets/${name}`} icon="key" onClick={() => replace(s, changed)}>Replace the value</Act>
    <Act method="DELETE" path={p`/secrets/${name}`} class="danger" onClick={() => remove(s, reload)}>Delete</Act><Menu label="More" entries={[curlEntry("GET", p`/secrets/${name}`)]} /></>}>
    <Panel title="Secret"><Facts of={[["Reference", <code>{"${secret:" + s.name + "}"}</code>], ["Version", number(s.version)], ["Created", <><Time at={s.createdAt} /> by <Actor of={s.createdBy} /></>], ["Updated", <><Time at={s.updatedAt} /> by <Actor of={s.updatedBy} /></>],
      ["Old value signs", s.overlapUntil ? <Until at={s.overlapUntil} over="no longer" /> : undefined], ["Audit", may("GET /audit") ? <a class="link" href={"/audit?subject=" + encodeURIComponent("secret/" + s.name)}>changes of this secret</a> : undefined]]} /></Panel>
  </Detail>;
}
