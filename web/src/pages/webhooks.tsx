// Webhooks: where events are sent to, and what receivers did not accept.
import { useEffect } from "preact/hooks";
import type { CreatedWebhook, Position, Webhook } from "../api.gen";
import { may, p } from "../core/api";
import { useGet, usePages } from "../core/data";
import { number, plural, short } from "../core/format";
import { go, params, segments, subjectLink, to } from "../core/router";
import { Empty, Facts, Failure, Id, Loading, Notice, Panel, State, Time, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu, quick } from "../ui/dialog";
import { Choice } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Actor, lengths, list, parts, tellSecret } from "./operate-part";

const signs = "Its receiver verifies messages with it, as Standard Webhooks describes.";

const create = (done: () => void) => ask({ title: "Create a webhook", label: "Create", method: "POST", path: "/webhooks",
  fields: [{ name: "url", label: "URL", required: true, placeholder: "https://…" }, { name: "name", label: "Name" }, { name: "events", label: "Events", placeholder: "*", help: "Names, separated by commas. Empty or *: all." },
    { name: "source", label: "Source", kind: "select", options: [{ value: "event", label: "your own streams" }, { value: "history", label: "histories ($…)" }] }, { name: "streams", label: "Streams", placeholder: "^orders", help: "A regular expression (RE2) for names of streams. Empty: all." },
    { name: "secret", label: "Secret", kind: "password", help: "whsec_ and 24 to 64 bytes in base64. Empty: a new one." }],
  send: v => ({ url: v.url, ...(v.name ? { name: v.name } : {}), ...(parts(v.events).length ? { events: parts(v.events) } : {}), source: v.source, ...(v.streams ? { streams: v.streams } : {}), ...(v.secret ? { secret: v.secret } : {}) }), said: "Created.",
  done: (r: CreatedWebhook, v) => { done(); go(to.webhook(r.id)); if (!v.secret) tellSecret("Secret of the webhook", r.secret, signs); } });

const rotate = (w: Webhook, done: () => void) => ask({ title: "Rotate the secret of " + (w.name || w.url), label: "Rotate", danger: true, method: "POST", path: p`/webhooks/${w.id}/rotate`,
  fields: [{ name: "overlapMs", label: "Sign with the old secret too for", kind: "select", value: "86400000", options: lengths([["not at all", 0], ["1 hour", 3600e3], ["1 day", 86400e3], ["7 days", 604800e3], ["30 days", 2592e6]]) }],
  send: v => ({ overlapMs: Number(v.overlapMs ?? 0) }), body: <p>Messages to {w.url} get a new secret.</p>, said: "Rotated.", done: (r: CreatedWebhook) => { done(); tellSecret("New secret of the webhook", r.secret, signs); } });

const remove = (w: Webhook, done: () => void) => ask({ title: "Delete the webhook " + (w.name || w.url), label: "Delete the webhook", danger: true, method: "DELETE", path: p`/webhooks/${w.id}`, body: <p>This deletes the webhook to <strong>{w.url}</strong> and its positions. Events that were not delivered yet are not sent any more.</p>, said: "Deleted.", done: () => { done(); go("/webhooks"); } });

export function Webhooks() {
  useTitle("Webhooks");
  const id = segments.value[1], admin = may("POST /webhooks");
  const rows = usePages<Webhook>("/webhooks", { topics: ["webhooks"] });
  const blocked = useGet<{ items: Position[] }>(p`/reactions/${"*"}/streams` + "?blocked=true&limit=1000", { topics: ["reactions", "webhooks"] });
  const of = (w: Webhook) => blocked.value.value?.items.filter(b => b.reaction === w.reaction).length;
  useEffect(() => admin ? offer([{ label: "Create a webhook", icon: "hook", run: () => create(rows.reload) }]) : undefined, [admin]);
  return <Split bar={<><h1>Webhooks</h1><span class="grow" /><Act method="POST" path="/webhooks" icon="plus" onClick={() => create(rows.reload)}>Create</Act><Menu label="More" entries={[curlEntry("GET", "/webhooks")]} /></>}
    list={<Table label="Webhooks" rows={rows} id={w => w.id} href={w => to.webhook(w.id)} current={id}
      empty={<Empty title="No webhooks" command="holdfast webhooks create https://example.com/hook --events paid">A webhook sends events to a URL, in order and signed, until the receiver accepts them.</Empty>}
      columns={[
        { title: "Name", cell: w => w.name || w.url }, { title: "Deliveries", cell: w => (of(w) === undefined ? <span class="muted">…</span> : of(w) ? <State of={plural(of(w)!, "blocked stream")} tone="danger" icon="stop" /> : <State of="none blocked" tone="ok" icon="check" />) },
        { title: "URL", cell: w => w.url, wide: true }, { title: "Events", cell: w => list(w.events, "all") }, { title: "Streams", cell: w => <code>{w.streams || "all"}</code>, wide: true }, { title: "Source", cell: w => w.source, wide: true }, { title: "Created", cell: w => <Time at={w.createdAt} />, wide: true }]} />}
    beside={id ? <WebhookDetail key={id} id={id} reload={rows.reload} /> : undefined} />;
}

function WebhookDetail({ id, reload }: { id: string; reload: () => void }) {
  const only = params.value.get("blocked");
  const read = useGet<Webhook>(p`/webhooks/${id}`, { topics: ["webhooks"] });
  const w = read.value.value;
  const positions = usePages<Position>(w ? p`/reactions/${w.reaction}/streams` + (only ? "?blocked=true" : "") : null, { topics: ["reactions", "webhooks", "streams"] });
  if (!w) return read.error.value ? <Detail title="Webhook" close="/webhooks"><Failure error={read.error.value} retry={read.reload} /></Detail> : <Loading />;
  const changed = () => { reload(); read.reload(); positions.reload(); };
  const all = positions.value.value ?? [], blocked = all.filter(x => x.blocked), path = (verb: string) => p`/reactions/${w.reaction}/` + verb;
  const unblock = (streams: string[]) => void quick("POST", path("unblock"), { streams }, `Unblocked ${plural(streams.length, "stream")}: the message is sent again.`, changed);
  const skip = (x: Position) => ask({ title: "Skip the message", label: "Skip", danger: true, method: "POST", path: path("skip"), send: () => ({ streams: [x.stream] }), said: "Skipped.", done: changed,
    body: <p>The message for version {x.failing ?? x.watermark + 1} of stream <strong>{x.stream}</strong> is not sent to {w.url} any more. Deliveries continue with the next event.</p> });
  return <Detail title={w.name || w.url} state={blocked.length ? <State of="blocked" /> : undefined} close="/webhooks" actions={<>
    <Act method="POST" path={p`/webhooks/${id}/rotate`} icon="key" onClick={() => rotate(w, changed)}>Rotate secret</Act>
    <Act method="DELETE" path={p`/webhooks/${id}`} class="danger" onClick={() => remove(w, reload)}>Delete</Act><Menu label="More" entries={[curlEntry("GET", p`/webhooks/${id}`)]} /></>}>
    {blocked.length > 0 && <Notice tone="danger" icon="stop"><p>The receiver refused a message for good, or did not accept it for about half a day, in {plural(blocked.length, "stream")}. Unblock them when the receiver is back.</p><Act method="POST" path={path("unblock")} onClick={() => unblock(blocked.map(x => x.stream))}>Unblock {plural(blocked.length, "stream")}</Act></Notice>}
    <Panel title="Webhook"><Facts of={[["URL", w.url], ["Events", list(w.events, "all")], ["Streams", <code>{w.streams || "all"}</code>], ["Source", w.source === "history" ? "histories" : "your own streams"], ["Reaction", <a class="link" href={to.reaction(w.reaction)}>{w.reaction}</a>],
      ["Created", <><Time at={w.createdAt} /> by <Actor of={w.createdBy} /></>], ["Secret rotated", <Time at={w.rotatedAt} none="never" />], ["Old secret valid", w.overlapUntil ? <Until at={w.overlapUntil} over="no longer" /> : undefined], ["Audit", may("GET /audit") ? <a class="link" href={"/audit?subject=webhook/" + w.id}>changes of this webhook</a> : undefined], ["Id", <Id id={w.id} most={40} />]]} /></Panel>
    <Panel title="Deliveries" flush actions={<Choice name="blocked" label="Show" options={[{ value: "true", label: "blocked only" }]} />}><Table label="Deliveries by stream" rows={positions} keys={false} height="420px" id={x => x.stream}
      empty={<Empty title={only ? "Nothing is blocked" : "Nothing was sent yet"}>Each stream that the webhook follows has a position here: how far its events were delivered.</Empty>} columns={[
        { title: "Stream", cell: x => <a class="link" href={subjectLink(x.stream)} title={x.stream}>{short(x.stream, 30)}</a> }, { title: "State", cell: x => <State of={x.blocked ? "blocked" : x.leasedBy ? "sending" : x.error ? "retrying" : x.watermark < x.head ? "due" : "done"} tone={x.leasedBy && !x.blocked ? "active" : undefined} icon={x.leasedBy && !x.blocked ? "play" : undefined} /> },
        { title: "Behind", cell: x => number(Math.max(0, x.head - x.watermark)), num: true }, { title: "Tries", cell: x => number(x.retry), num: true }, { title: "Error", cell: x => (x.error ? <span title={x.error}>{x.error}</span> : <span class="muted">–</span>) }, { title: "Next", cell: x => (x.blocked || x.watermark >= x.head ? <span class="muted">–</span> : <Time at={x.notBefore} />) },
        { title: "Do", cell: x => (x.blocked || x.error ? <span class="row">{x.blocked && <Act class="small" method="POST" path={path("unblock")} onClick={() => unblock([x.stream])}>Unblock</Act>}<Act class="small" method="POST" path={path("skip")} onClick={() => skip(x)}>Skip</Act></span> : <span class="muted">–</span>) }]} /></Panel>
  </Detail>;
}

