// Handlers: what they are, who polls for their work, and what fails.
import { useEffect } from "preact/hooks";
import type { Batch, Handler, Node, Operation, Reaction, Run } from "../api.gen";
import { may, p, query } from "../core/api";
import { useFollow, useGet, usePages } from "../core/data";
import { plural } from "../core/format";
import { go, params, segments, to } from "../core/router";
import { Empty, Facts, Failure, Id, Loading, Notice, Panel, State, Time, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, type Field, Menu } from "../ui/dialog";
import { Choice, Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { SimpleTable, Split, Table } from "../ui/table";
import { lengthText, tellSecret } from "./operate-part";

/** useNodes reads the nodes, and takes each report as it arrives. */
export function useNodes() {
  const read = useGet<{ items: Node[] }>("/nodes?limit=1000", { topics: ["nodes"], when: m => m.reset });
  useFollow({ topics: ["nodes"] }, m => { if (m.state?.nodes && m.state.nodes.length < 100) read.set({ items: m.state.nodes }); });
  return read;
}

interface Poller { node: Node; kinds: string[]; remote: boolean }

/** pollers returns the nodes that poll for the work of a handler, for themselves or for a worker. */
function pollers(nodes: Node[] | undefined, name: string): Poller[] {
  return (nodes ?? []).flatMap(node => {
    const all = node.serves.filter(s => s.name === name && (["step", "batch"].includes(s.kind) || s.remote)); // an operation that the node serves itself names a lifecycle
    return all.length ? [{ node, kinds: [...new Set(all.map(s => s.kind))], remote: all.some(s => s.remote) }] : [];
  });
}

function Polled({ by, known }: { by: Poller[]; known: boolean }) {
  if (!known) return <span class="muted">…</span>;
  const here = by.filter(x => !x.node.gone);
  if (!here.length) return <State of="nobody polls" tone="danger" icon="warning" />;
  return <State of={here.some(x => x.remote) ? "worker" : plural(here.length, "node")} tone="ok" icon="check" title={here.map(x => x.node.name).join(", ")} />;
}

const fields = (h?: Handler): Field[] => [
  ...(h ? [] : [{ name: "name", label: "Name", required: true, help: "As configs and definitions name it." } as Field]),
  { name: "kind", label: "Kind", kind: "select", value: h?.kind ?? "worker", options: [{ value: "worker", label: "worker: workers claim its tasks" }, { value: "http", label: "http: the server calls a URL" }] },
  { name: "url", label: "URL", value: h?.url, placeholder: "https://…", help: "Only for http. It must be public, unless --allow-private includes its network." },
  { name: "safety", label: "Safety", kind: "select", value: h?.safety ?? "", options: [{ value: "", label: "not declared" }, { value: "idempotent", label: "idempotent: it may run again" }, { value: "transactional", label: "transactional" }, { value: "journaled", label: "journaled: it records its effects" }, { value: "opaque", label: "opaque: once it is handed out, its effects may have happened" }] },
  { name: "onUnknown", label: "If the outcome is unknown", kind: "select", value: h?.onUnknown ?? "hold", options: [{ value: "hold", label: "hold: wait for a person" }, { value: "retry", label: "retry with the same key" }, { value: "probe", label: "probe: ask whether it happened" }] },
  { name: "timeoutMs", label: "Timeout in ms", kind: "number", value: h?.timeoutMs ? String(h.timeoutMs) : "", help: "Empty: 15 minutes." },
];

const body = (v: Record<string, any>) => ({ kind: v.kind, ...(v.url && v.kind === "http" ? { url: v.url } : {}), ...(v.safety ? { safety: v.safety } : {}), ...(v.onUnknown ? { onUnknown: v.onUnknown } : {}), ...(v.timeoutMs ? { timeoutMs: v.timeoutMs } : {}) });
const signs = "It signs the calls of the server to this handler.";

function put(done: () => void, h?: Handler) {
  ask({ title: h ? "Replace " + h.name : "Declare a handler", label: h ? "Replace" : "Declare", method: "PUT", path: v => p`/handlers/${h?.name ?? v.name ?? "NAME"}`, fields: fields(h), send: body, body: h && "Everything that the form leaves empty gets its default.", said: h ? "Replaced." : "Declared.",
    done: (r: Handler) => { done(); if (!h) go(to.handler(r.name)); if (r.secret) tellSecret("Signing secret of " + r.name, r.secret, signs); } });
}

/** rotate replaces the secret. The API generates one only for a new handler, so the browser does. */
function rotate(h: Handler, done: () => void) {
  const secret = "whsec_" + btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
  ask({ title: "Replace the secret of " + h.name, label: "Replace the secret", danger: true, method: "PUT", path: p`/handlers/${h.name}`, send: () => ({ ...body(h), secret }), body: <p>From now on, calls of <strong>{h.name}</strong> are signed with the new secret only. The receiver at {h.url} refuses them until it knows the secret.</p>,
    said: "Replaced.", done: () => { done(); tellSecret("New secret of " + h.name, secret, signs); } });
}

const remove = (h: Handler, done: () => void) => ask({ title: "Delete " + h.name, label: "Delete " + h.name, danger: true, method: "DELETE", path: p`/handlers/${h.name}`, said: "Deleted.", done: () => { done(); go("/handlers"); },
  body: <p>This deletes the declaration of handler <strong>{h.name}</strong>. The deletion is refused while operations wait for the handler's workers, or while a lifecycle or reaction refers to the handler.</p> });

export function Handlers() {
  useTitle("Handlers");
  const id = segments.value[1], q = params.value, nodes = useNodes();
  const rows = usePages<Handler>("/handlers");
  const text = (q.get("q") ?? "").toLowerCase(), kind = q.get("kind");
  const shown = rows.value.value?.filter(h => (!text || h.name.toLowerCase().includes(text)) && (!kind || h.kind === kind));
  const admin = may("PUT /handlers/{name}");
  useEffect(() => admin ? offer([{ label: "Declare a handler", icon: "plug", run: () => put(rows.reload) }]) : undefined, [admin]);
  return <Split bar={<><h1>Handlers</h1><Choice name="kind" label="Kind" options={["worker", "http"]} /><Search name="q" label="Name" /><span class="grow" /><Act method="PUT" path="/handlers/x" icon="plus" onClick={() => put(rows.reload)}>Declare</Act><Menu label="More" entries={[curlEntry("GET", "/handlers")]} /></>}
    list={<Table label="Handlers" rows={{ ...rows, value: { get value() { return shown; } } as typeof rows.value }} id={h => h.name} href={h => to.handler(h.name)} current={id}
      empty={text || kind ? <Empty title="No such handler">No handler matches the filters.</Empty> : <Empty title="No handlers" command={"holdfast handlers put Charge --safety journaled --on-unknown hold"}>A handler does the work of steps, reactions and batches: workers that claim tasks, or a URL. Handlers of a Go program are not declared, and not listed here.</Empty>}
      columns={[
        { title: "Name", cell: h => h.name }, { title: "Polled by", cell: h => <Polled by={pollers(nodes.value.value?.items, h.name)} known={!!nodes.value.value} /> }, { title: "Kind", cell: h => h.kind, wide: true }, { title: "Where", cell: h => h.url || <span class="muted">workers</span>, wide: true },
        { title: "Safety", cell: h => h.safety || <span class="muted">not declared</span> }, { title: "If unknown", cell: h => h.onUnknown, wide: true }, { title: "Timeout", cell: h => lengthText(h.timeoutMs), num: true, wide: true }, { title: "Last seen", cell: h => <Time at={lastSeen(pollers(nodes.value.value?.items, h.name))} none="never" /> }]} />}
    beside={id ? <HandlerDetail key={id} name={id} nodes={nodes.value.value?.items} reload={rows.reload} /> : undefined} />;
}

const lastSeen = (by: Poller[]) => by.map(x => x.node.seenAt).filter(Boolean).sort().at(-1);

function HandlerDetail({ name, nodes, reload }: { name: string; nodes?: Node[]; reload: () => void }) {
  const read = useGet<Handler>(p`/handlers/${name}`);
  const operations = useGet<{ items: Operation[] }>("/operations" + query({ handler: name, limit: 50 }), { topics: ["operations"] });
  const lost = useGet<{ items: Operation[] }>("/operations" + query({ handler: name, state: "lost", limit: 50 }), { topics: ["operations"] });
  const failed = useGet<{ items: Run[] }>("/workflow-runs" + query({ handler: name, status: "FAILED", limit: 20 }), { topics: ["runs"] });
  const batches = useGet<{ items: Batch[] }>("/batches" + query({ handler: name, limit: 20, backward: true }), { topics: ["batches"] });
  const reactions = useGet<{ items: Reaction[] }>("/reactions?limit=1000", { topics: ["reactions"] });
  const h = read.value.value, by = pollers(nodes, name), undeclared = read.error.value?.status === 404;
  if (!h && read.error.value && !undeclared) return <Detail title={name} close="/handlers"><Failure error={read.error.value} retry={read.reload} /></Detail>;
  if (!h && !undeclared) return <Loading />;
  const changed = () => { reload(); read.reload(); };
  const errors = operations.value.value?.items.filter(o => o.error) ?? [];
  const served = reactions.value.value?.items.filter(r => r.handler === name);
  return <Detail title={name} state={<Polled by={by} known={!!nodes} />} close="/handlers" actions={h && <>
    <Act method="PUT" path={p`/handlers/${name}`} onClick={() => put(changed, h)}>Replace</Act>
    {h.kind === "http" && <Act method="PUT" path={p`/handlers/${name}`} icon="key" onClick={() => rotate(h, changed)}>Rotate secret</Act>}
    <Act method="DELETE" path={p`/handlers/${name}`} class="danger" onClick={() => remove(h, reload)}>Delete</Act><Menu label="More" entries={[curlEntry("GET", p`/handlers/${name}`)]} /></>}>
    {nodes && !by.some(x => !x.node.gone) && <Notice tone="danger"><p>Nobody polls for its work. {h?.kind === "http" ? "Start a server: it calls the URL." : "Start a worker that claims its tasks."} Work that is due waits.</p></Notice>}
    {h ? <Panel title="Declaration"><Facts of={[["Kind", h.kind], ["URL", h.url || undefined], ["Safety", h.safety || "not declared"], ["If the outcome is unknown", h.onUnknown], ["Timeout", h.timeoutMs ? lengthText(h.timeoutMs) : "15 min (default)"], ["Declared", <Time at={h.createdAt} />], ["Last change", <Time at={h.updatedAt} />]]} /></Panel>
      : <Notice tone="neutral" icon="plug"><p>This handler is not declared in the API. It belongs to a Go program, or it no longer exists.</p></Notice>}
    <Panel title="Who polls" flush><SimpleTable of={by} id={x => x.node.name} empty={<Empty title="Nobody">A node or worker that asks for the work of this handler is listed here within 10 seconds.</Empty>} columns={[
      { title: "Node", cell: x => <a class="link" href={to.node(x.node.name)}>{x.node.name}</a> }, { title: "For", cell: x => (x.remote ? "a worker" : "itself") }, { title: "Work", cell: x => x.kinds.join(", ") }, { title: "State", cell: x => <State of={x.node.gone ? "gone" : x.node.stalled ? "stalled" : "ready"} /> }, { title: "Last seen", cell: x => <Time at={x.node.seenAt} /> }]} /></Panel>
    <Panel title={`Errors (${errors.length})`} flush>{operations.error.value ? <Failure error={operations.error.value} retry={operations.reload} /> : <SimpleTable of={errors} id={o => o.id} empty={<Empty title="No errors">Unfinished operations whose last attempt failed are listed here.</Empty>} columns={[
      { title: "Operation", cell: o => <a class="link" href={to.operation(o.id)}>{o.subject}</a> }, { title: "State", cell: o => <State of={o.state} /> }, { title: "Error", cell: o => o.error, class: "wrap" }, { title: "Since", cell: o => <Time at={o.since} /> }]} />}</Panel>
    {lost.value.value?.items.length ? <Panel title={`Handed out and lost (${lost.value.value.items.length})`} flush><SimpleTable of={lost.value.value.items} id={o => o.id} columns={[{ title: "Work", cell: o => o.subject }, { title: "Times", cell: o => o.lostHandOuts, num: true }, { title: "State", cell: o => <State of={o.state} /> }, { title: "Since", cell: o => <Time at={o.since} /> }]} /></Panel> : null}
    {failed.value.value?.items.length ? <Panel title="Failed runs" flush actions={<a class="link" href={`/runs?status=FAILED&handler=${encodeURIComponent(name)}`}>All</a>}><SimpleTable of={failed.value.value.items} id={r => r.id} columns={[{ title: "Run", cell: r => <Id id={r.id} href={to.run(r.id)} /> }, { title: "Step", cell: r => r.currentStepName ?? "–" }, { title: "Error", cell: r => r.error ?? "–", class: "wrap" }, { title: "Created", cell: r => <Time at={r.createdAt} /> }]} /></Panel> : null}
    {served?.length ? <Panel title="Reactions" flush><SimpleTable of={served} id={r => r.name} columns={[{ title: "Reaction", cell: r => <a class="link" href={to.reaction(r.name)}>{r.name}</a> }, { title: "Events", cell: r => r.events.join(", ") }, { title: "Streams", cell: r => <code>{r.streams || "all"}</code> }]} /></Panel> : null}
    {batches.value.value?.items.length ? <Panel title="Batches" flush><SimpleTable of={batches.value.value.items} id={b => b.id} columns={[{ title: "Batch", cell: b => <a class="link" href={to.batch(b.id)}>{b.id}</a> }, { title: "Status", cell: b => <State of={b.status} /> }, { title: "Error", cell: b => b.error ?? "–", class: "wrap" }]} /></Panel> : null}
  </Detail>;
}
