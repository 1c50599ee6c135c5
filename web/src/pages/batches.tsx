// Batches: lists of paid work, their progress, and whether the points add up.
import { useEffect, useState } from "preact/hooks";
import type { Batch, BatchItem, Handler, ListBatchItem, Wallet } from "../api.gen";
import { get, may, p, query, Refused } from "../core/api";
import { useGet, usePages } from "../core/data";
import { number, plural } from "../core/format";
import { about, topic } from "../core/live";
import { go, params, segments, setParams, to } from "../core/router";
import { Button, Empty, Failure, Facts, Icon, Id, Json, Loading, Notice, Panel, State, Time, type Tone, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { Choice, Range, since } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { brief, ClearFilters, Events, options, Shown, useInboxEntries, useOwnParams, Why } from "./work-part";

const statuses = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "CANCELLING", "CANCELLED"], names = ["status", "handler", "wallet", "range"];
const ended = (b: Batch) => b.status === "COMPLETED" || b.status === "CANCELLED";
const size = (b: Batch) => b.counts.pending + b.counts.running + b.counts.succeeded + b.counts.failed + b.counts.cancelled;

export function Batches() {
  useTitle("Batches");
  const q = params.value, id = segments.value[1], path = "/batches" + query({ status: q.get("status"), handler: q.get("handler"), wallet: q.get("wallet"), since: since(), backward: true });
  const rows = usePages<Batch>(path, { topics: ["batches"], when: about("batch") });
  const handlers = useGet<{ items: Handler[] }>("/handlers?limit=1000").value.value?.items.map(h => h.name) ?? [], wallets = useGet<{ items: Wallet[] }>("/wallets?limit=1000").value.value?.items.map(w => w.id) ?? [];
  const all = rows.value.value ?? [];
  useEffect(() => offer(may("POST /batches") ? [{ label: "Create a batch", run: () => create(handlers, wallets) }] : []), [handlers.length, wallets.length]);
  return <Split bar={<><h1>Batches</h1><Shown rows={rows} one="batch" many="batches" /><div class="filters"><Choice name="status" label="Status" options={statuses} /><Choice name="handler" label="Handler" options={options("handler", [...handlers, ...all.map(b => b.handler)])} /><Choice name="wallet" label="Wallet" options={options("wallet", wallets)} /><Range label="Created" /><ClearFilters names={names} /></div><span class="grow" />
    <Act method="POST" path="/batches" icon="plus" onClick={() => create(handlers, wallets)}>Create a batch</Act><Menu label="More" entries={[curlEntry("GET", path)]} /></>}
    list={<Table label="Batches" rows={rows} id={b => b.id} href={b => to.batch(b.id)} current={id}
      empty={names.some(n => q.get(n)) ? <Empty title="No batch matches the filter">Remove a filter to see more.</Empty> : <Empty title="No batches" command={`holdfast batches create items.jsonl --wallet acme --handler scan`}>A batch is a list of items that are paid for from a wallet. Batches that you create appear here.</Empty>}
      columns={[{ title: "Batch", cell: b => <Id id={b.id} /> }, { title: "Status", cell: b => <span class="row"><State of={b.status} />{b.error && <span class="tone tone-danger" title={b.error}><Icon name="warning" /></span>}</span> }, { title: "Progress", cell: b => <Progress b={b} small /> },
        { title: "Handler", cell: b => <a href={to.handler(b.handler)}>{b.handler}</a>, wide: true }, { title: "Wallet", cell: b => <a href={to.wallet(b.wallet)}>{b.wallet}</a>, wide: true }, { title: "Charged", num: true, cell: b => number(b.charged), wide: true }, { title: "Refunded", num: true, cell: b => number(b.refunded), wide: true }, { title: "Created", cell: b => <Time at={b.createdAt} />, wide: true }]} />}
    beside={id ? <BatchDetail key={id} id={id} /> : undefined} />;
}

function create(handlers: string[], wallets: string[]): void {
  const pick = (name: string, label: string, all: string[]) => all.length ? { name, label, kind: "select" as const, options: all.map(v => ({ value: v, label: v })) } : { name, label, required: true };
  ask({ title: "Create a batch", label: "Create", method: "POST", path: "/batches",
    fields: [pick("handler", "Handler", handlers), pick("wallet", "Wallet that pays", wallets), { name: "items", label: "Items (a JSON list)", kind: "json", required: true, value: '[{"key": "p1", "cost": 10, "input": {}}]', help: "Each has a key that is unique in the batch, a cost in points, and an input." },
      { name: "parallel", label: "Items at the same time", kind: "number", value: "1" }, { name: "open", label: "Leave it open, so that items can be added", kind: "checkbox" }, { name: "id", label: "Id", help: "Generated if empty." }],
    send: v => v, said: "Created.", done: (b: Batch) => go(to.batch(b.id)) });
}

interface Part { label: string; n: number; tone: Tone; hatched?: boolean }
const partsOf = ({ counts: c }: Batch): Part[] => [
  { label: "accepted", n: c.accepted, tone: "ok" as Tone }, { label: "succeeded, not accepted", n: c.succeeded - c.accepted, tone: "ok" as Tone, hatched: true }, { label: "running", n: c.running, tone: "active" as Tone }, { label: "failed", n: c.failed, tone: "danger" as Tone },
  { label: "cancelled", n: c.cancelled, tone: "neutral" as Tone }, { label: "pending", n: c.pending, tone: "waiting" as Tone, hatched: true }].filter(x => x.n > 0);

function Progress({ b, small }: { b: Batch; small?: boolean }) {
  const total = size(b), parts = partsOf(b), done = total - b.counts.pending - b.counts.running, text = parts.map(x => `${number(x.n)} ${x.label}`).join(", ") || "no items";
  const bar = <div class="parts grow" role="img" aria-label={text} title={text}>{parts.map(x => <i key={x.label} class={`tone-${x.tone}${x.hatched ? " hatched" : ""}`} style={{ flexGrow: x.n }} />)}</div>;
  if (small) return <span class="row" style={{ minWidth: "140px" }}>{bar}<span class="muted">{number(done)}/{number(total)}</span></span>;
  return <>{bar}<div class="numbers">{parts.map(x => <span key={x.label}><i class={`swatch tone-${x.tone}${x.hatched ? " hatched" : ""}`} /><strong>{number(x.n)}</strong><span class="muted">{x.label}</span></span>)}<span><strong>{number(total)}</strong><span class="muted">in total{b.open ? ", open for more" : ""}</span></span></div></>;
}

function BatchDetail({ id }: { id: string }) {
  useOwnParams("batches", ["state"]);
  const base = p`/batches/${id}`, follow = { topics: [topic("batch", id)], when: about("batch", id) };
  const read = useGet<Batch>(base, follow), b = read.value.value, entry = useInboxEntries(i => (i.kind === "pausedBatch" || i.kind === "failingTeardown") && i.subject === id)[0];
  useTitle("Batch " + id);
  const actions = b ? batchActions(b) : [];
  useEffect(() => offer(actions.map(a => ({ label: a.label, run: a.run }))), [b?.status, b?.updatedAt]);
  if (!b) return <Detail title="Batch" close="/batches">{read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />}</Detail>;
  const [tone, icon, text] = whyBatch(b);
  return <Detail title={<Id id={id} most={40} />} state={<State of={b.status} />} close="/batches" actions={<>
    {actions.filter(a => a.main).map(a => <Button key={a.label} class={a.danger ? "danger" : ""} onClick={a.run}>{a.label}</Button>)}
    <Menu label="More actions" entries={[...actions.filter(a => !a.main).map(a => ({ label: a.label, run: a.run, danger: a.danger })), curlEntry("GET", base)]} /></>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    <Why tone={tone} icon={icon} entry={entry} text={<strong>{entry?.reason ?? text}</strong>} />
    <Panel title="Progress"><Progress b={b} /></Panel>
    <Equation b={b} />
    <Facts of={[["Handler", <a class="link" href={to.handler(b.handler)}>{b.handler}</a>], ["Wallet", <a class="link" href={to.wallet(b.wallet)}>{b.wallet}</a>], ["At the same time", plural(b.parallel, "item")], ["Items", b.open ? "more can be added until it is sealed" : "sealed"], ["Created", <Time at={b.createdAt} />], ["Changed", <Time at={b.updatedAt} />]]} />
    {b.itemsDeletedAt ? <Panel title="Items"><Empty title="The items were deleted">They were deleted from <Time at={b.itemsDeletedAt} /> on, after their retention. The counts and sums remain.</Empty></Panel> : <Items b={b} />}
    <Events stream={"$batch/" + id} kind="batch" subject={id} />
  </Detail>;
}

function whyBatch(b: Batch): [Tone, "check" | "play" | "pause" | "clock" | "stop" | "warning", string] {
  if (b.error) return ["danger", "warning", `The teardown or cleanup of the ${b.status} batch fails and is tried again: ${b.error}.`];
  switch (b.status) {
    case "COMPLETED": return ["ok", "check", "Completed: all items that succeeded are accepted, and their charges are final."];
    case "CANCELLED": return ["neutral", "stop", "Cancelled: every charge that was not accepted is refunded."];
    case "CANCELLING": return ["waiting", "clock", "Cancellation was requested: no new item starts, and the batch ends when items in flight are torn down and refunded."];
    case "PAUSED": return ["waiting", "pause", `Paused: wallet "${b.wallet}" cannot pay for the next item. A credit resumes the batch.`];
    case "PENDING": return ["waiting", "clock", `No item has been taken yet. Workers of handler "${b.handler}" take them.`];
  }
  return b.counts.pending + b.counts.running === 0 && b.open ? ["waiting", "clock", "All items are done. Seal the batch to complete it, or add more items."] : ["active", "play", `${plural(b.counts.running, "item")} in flight, ${number(b.counts.pending)} to go.`];
}

function batchActions(b: Batch): { label: string; run: () => void; main?: boolean; danger?: boolean }[] {
  const base = p`/batches/${b.id}`, waiting = b.counts.succeeded - b.counts.accepted, out = [];
  if (b.open && !b.cancelRequested && may("POST /batches/{id}/items")) out.push({ label: "Add items", main: true, run: () => ask({ title: "Add items", label: "Add", method: "POST", path: base + "/items", body: <p class="muted">Identical items that the batch already has are not added again.</p>,
    fields: [{ name: "items", label: "Items (a JSON list)", kind: "json", required: true, value: '[{"key": "p2", "cost": 10, "input": {}}]' }], send: v => v, said: r => `${plural(r.added, "item")} added.` }) });
  if (b.open && !b.cancelRequested && may("POST /batches/{id}/seal")) out.push({ label: "Seal", main: true, run: () => ask({ title: "Seal the batch", label: "Seal", method: "POST", path: base + "/seal", body: <p>No more items can be added to <code>{b.id}</code>. It completes when no work is left, and all items that succeeded are then accepted.</p>, said: "Sealed." }) });
  if (!ended(b) && waiting > 0 && may("POST /batches/{id}/finalize")) out.push({ label: "Accept what has succeeded", main: true, run: () => finalize(b, waiting) });
  if (!ended(b) && !b.cancelRequested && may("POST /batches/{id}/cancel")) out.push({ label: "Cancel", main: true, danger: true, run: () => ask({ title: "Cancel the batch", label: "Cancel the batch", danger: true, touches: size(b) - b.counts.accepted - b.counts.failed, method: "POST", path: base + "/cancel", send: () => ({}),
    body: <p>No further item of <code>{b.id}</code> starts. {plural(size(b) - b.counts.accepted - b.counts.failed, "item that is", "items that are")} not accepted will be cancelled, and {number(b.charged - b.refunded)} points or less go back to wallet {b.wallet}. This cannot be undone.</p>,
    said: r => (r.result === "CANCELLED" ? "Cancelled." : "Requested: items in flight are being torn down.") }) });
  return out;
}

const finalize = (b: Batch, n: number, items?: string[], done?: () => void) => ask({ title: items ? `Accept ${plural(n, "item")}` : "Accept all items that have succeeded", label: "Accept", danger: true, touches: n, method: "POST", path: p`/batches/${b.id}/finalize`, send: () => (items ? { items } : {}),
  body: <p>The charges of {plural(n, "item")} of <code>{b.id}</code> become final: a cancel will not refund them. {items ? "Items that have not succeeded are left out." : "Items that succeed before the request arrives are accepted, too."}</p>, said: r => `${plural(r.accepted, "item")} accepted.`, done });

interface Sums { batch: Batch; accepted: number; returned: number; open: number }

/** addUp sums what the items cost. The batch is read before and after: sums count only if it did not change in between. */
async function addUp(id: string, signal: AbortSignal): Promise<Sums | undefined> {
  const before = await get<Batch>(p`/batches/${id}`, { signal }), s = { accepted: 0, returned: 0, open: 0 };
  let next: string | null = null;
  do {
    const page: ListBatchItem = await get<ListBatchItem>(p`/batches/${id}/items` + query({ limit: 1000, cursor: next }), { signal });
    for (const i of page.items) {
      if (i.decision === "accepted") s.accepted += i.cost;
      else if (i.state === "failed") s.returned += i.cost;
      else if (i.state === "succeeded" || i.state === "running" || i.state === "waiting") s.open += i.cost;
    }
    next = page.next;
  } while (next);
  const batch = await get<Batch>(p`/batches/${id}`, { signal });
  return batch.updatedAt === before.updatedAt && JSON.stringify(batch.counts) === JSON.stringify(before.counts) ? { batch, ...s } : undefined;
}

const most = 1000; // items that are added up without being asked to

/** Equation shows where the charged points are: accepted for good, refunded for cancelled items, returned for failed ones, or still open. */
function Equation({ b }: { b: Batch }) {
  const [sums, set] = useState<Sums>(), [error, setError] = useState<Refused>(), [busy, setBusy] = useState(false), [asked, again] = useState(0);
  const large = size(b) > most, gone = b.itemsDeletedAt;
  useEffect(() => {
    if (gone || large && !asked) return;
    const mine = new AbortController();
    const timer = setTimeout(async () => {
      setBusy(true);
      try { const s = await addUp(b.id, mine.signal); if (s) set(s); setError(undefined); } catch (e) { if (!mine.signal.aborted) setError(e as Refused); }
      if (!mine.signal.aborted) setBusy(false);
    }, sums ? 1000 : 0);
    return () => { clearTimeout(timer); mine.abort(); };
  }, [large ? "" : b.updatedAt, asked]);
  const title = "Points";
  if (error && !gone) return <Panel title={title}><Failure error={error} retry={() => again(n => n + 1)} /></Panel>;
  if (!sums || gone) return <Panel title={title} actions={large && !gone && <Button class="small" disabled={busy} onClick={() => again(n => n + 1)}>{busy ? "Adding up…" : `Add up ${plural(size(b), "item")}`}</Button>}>
    <div class="equation"><Term n={b.charged} label="charged" /><i>=</i><Term n={b.charged - b.refunded} label={gone ? "accepted" : "accepted or open"} /><i>+</i><Term n={b.refunded} label="refunded or returned" /></div></Panel>;
  const x = sums.batch, refunded = x.refunded - sums.returned, right = sums.accepted + x.refunded + sums.open, difference = x.charged - right, live = !ended(x);
  return <Panel title={title} actions={<><span class="shown">{plural(size(x), "item")} added up{busy ? "…" : ""}</span>{large && <Button class="small" disabled={busy} onClick={() => again(n => n + 1)}>Again</Button>}</>}>
    <div class="equation" data-holds={difference === 0}><Term n={x.charged} label="charged" /><i>=</i><Term n={sums.accepted} label="accepted" /><i>+</i><Term n={refunded} label="refunded" /><i>+</i><Term n={sums.returned} label="returned" />{(live || sums.open !== 0) && <><i>+</i><Term n={sums.open} label="still open" /></>}
      {difference === 0 ? <State of="adds up" tone="ok" icon="check" /> : <State of={`${difference > 0 ? "+" : "−"}${number(Math.abs(difference))} points do not add up`} tone="danger" icon="x" />}</div>
    <p class="muted">Refunded: items that were cancelled. Returned: items that failed.{live && " Still open: items that are in flight, wait for a retry, or succeeded and are not accepted yet."}{difference !== 0 && <> Audit the <a class="link" href={to.wallet(x.wallet)}>wallet</a>, and run <code>holdfast check</code>.</>}</p>
  </Panel>;
}

const Term = ({ n, label }: { n: number; label: string }) => <span class="term"><b>{number(n)}</b><small>{label}</small></span>;

function Items({ b }: { b: Batch }) {
  const state = params.value.get("state") ?? "", path = p`/batches/${b.id}/items` + query({ state });
  const rows = usePages<BatchItem>(path, { topics: [topic("batch", b.id)], when: about("batch", b.id) }), [open, set] = useState<string>();
  const item = rows.value.value?.find(i => i.key === open);
  return <Panel title="Items" flush actions={<><Shown rows={rows} one="item" /><select aria-label="State of the items" value={state} onChange={e => setParams({ state: e.currentTarget.value })}><option value="">State: all</option>{["pending", "waiting", "running", "succeeded", "failed", "cancelled"].map(s => <option key={s} value={s}>{s}</option>)}</select><Menu label="More for the items" entries={[curlEntry("GET", path)]} /></>}>
    <Table label="Items" rows={rows} id={i => i.key} keys={false} height={(rows.value.value?.length ?? 0) > 10 ? "360px" : "auto"} empty={<Empty title={state ? `No item is ${state}` : "No items"}>{b.open ? "Add items until the batch is sealed." : undefined}</Empty>}
      selection={!ended(b) && may("POST /batches/{id}/finalize") ? (ids, clear) => <Button class="small" onClick={() => finalize(b, ids.length, ids, clear)}>Accept</Button> : undefined}
      columns={[{ title: "Item", cell: i => <button type="button" class="bare link" aria-expanded={open === i.key} onClick={() => set(open === i.key ? undefined : i.key)}>{i.key}</button> }, { title: "State", cell: i => <State of={i.decision === "accepted" ? "accepted" : i.state} /> },
        { title: "Attempts", num: true, cell: i => <>{i.attempts}{i.lostHandOuts > 0 && <span class="muted" title="hand-outs to workers that never responded"> +{i.lostHandOuts} lost</span>}</> }, { title: "Cost", num: true, cell: i => number(i.cost) },
        { title: "Result", class: "mono rest", cell: i => i.error ? <span class="tone tone-danger" title={i.error}>{i.error}</span> : <span class="muted">{brief(i.output)}</span> }]} />
    {item && <div class="body stack tight"><p class="row"><strong>{item.key}</strong><State of={item.state} /><span class="grow" /><Button class="quiet small" icon="x" onClick={() => set(undefined)}>Close</Button></p>
      {item.error && <Notice tone="danger" icon="x"><p>{item.error}</p></Notice>}{item.artifacts && <p class="muted">Artifacts under <code>{item.artifacts}</code></p>}<Json value={item.output} label={"Output of " + item.key} /></div>}
  </Panel>;
}
