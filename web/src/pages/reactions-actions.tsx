// What can be done to reactions and their positions.
import type { Event, NewBulk, Position, Reaction, StartedBulk } from "../api.gen";
import { act, get, p, query, Refused } from "../core/api";
import { number, plural, sentence } from "../core/format";
import { go, to } from "../core/router";
import { Notice } from "../ui/basic";
import { ask, quick, toast, type Field } from "../ui/dialog";

const reaction = (name: string, what: string) => p`/reactions/${name}/${what}`;

/** refused says why a request that prepares a dialog failed. */
const refused = (e: unknown) => toast(e instanceof Refused ? <>{sentence(e.message)} <code>{e.code}</code></> : String(e), "danger");

/** unblock tries the event again that blocks a position. */
export const unblock = (x: Position, done?: () => void) =>
  void quick("POST", reaction(x.reaction, "unblock"), { streams: [x.stream] }, <>{x.reaction} tries {x.stream} again.</>, done);

/** skip asks before an event is left out. */
export function skip(x: Position, e?: Event): void {
  ask({
    title: "Skip the event", label: "Skip", danger: true, method: "POST", path: reaction(x.reaction, "skip"), send: () => ({ streams: [x.stream] }),
    body: <p><code>{x.reaction}</code> will never handle {e ? <><code>{e.name}</code>, version {number(e.version)} of <code>{x.stream}</code></> : <>version {number(x.failing ?? x.watermark + 1)} of <code>{x.stream}</code></>}. It continues with the next event. A skip cannot be undone, except by a reset.</p>,
    said: r => (r.streams.length ? "Skipped." : "Nothing was skipped: no event has failed."),
  });
}

/** reset counts what would be handled again, and asks. */
export async function reset(name: string, streams?: string[]): Promise<void> {
  try {
    let count = 0, events = 0, held = 0, cursor: string | null = "";
    for (let n = 0; n < 20 && cursor !== null; n++) {
      const page: { items: Position[]; next: string | null } = await get(reaction(name, "streams") + query({ limit: 1000, cursor, stream: streams && pattern(streams) }));
      for (const x of page.items) { count++; events += x.watermark + 1; held += x.leasedBy ? 1 : 0; }
      cursor = page.next;
    }
    const more = cursor === null ? "" : "more than ";
    ask({
      title: "Reset " + name, label: "Reset", danger: true, touches: count, method: "POST", path: reaction(name, "reset"), send: () => (streams ? { streams } : {}),
      body: <><p><code>{name}</code> starts again at the first stored event of {more}{plural(count, "stream")}. It handles up to {more}{plural(events, "event")} a second time{name.startsWith("$after:") ? ", and performs their after-effects again." : "."}</p>
        {held > 0 && <Notice tone="waiting" icon="clock"><p>{plural(held, "stream is", "streams are")} leased now and will be reset when the lease ends.</p></Notice>}</>,
      said: r => `${plural(r.streams.length, "stream was", "streams were")} reset, ${number(r.pending.length)} will be when the lease ends.`,
    });
  } catch (e) { refused(e); }
}

/** pattern is a regular expression (RE2) that matches exactly these names. */
export const pattern = (names: string[]) => "^(" + names.map(n => n.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|") + ")$";

/** bulk asks the API what an action would touch, and then whether to do it. */
export async function bulk(action: "reaction.unblock" | "reaction.skip", what: Pick<NewBulk, "ids" | "filter">, done?: () => void): Promise<void> {
  const body: NewBulk = { action, ...what }, verb = action === "reaction.unblock" ? "Unblock" : "Skip";
  try {
    const { preview } = await act<StartedBulk>("POST", "/bulk", { ...body, dryRun: true });
    if (!preview || preview.total === 0) { toast("No position can be changed: none of them is blocked.", "waiting"); return; }
    ask({
      title: `${verb} ${plural(preview.total, "blocked stream")}`, label: verb, danger: action === "reaction.skip", touches: preview.total, method: "POST", path: "/bulk", send: () => body,
      body: <><p>{action === "reaction.unblock" ? "Each of them tries its event again." : "Each of them leaves out the event that blocks it, for good."} It runs in the background; those that are refused are listed.</p>
        <ul class="members">{preview.members.slice(0, 10).map(m => <li key={m.id} class="mono clip" title={m.id}>{m.id}</li>)}{preview.total > 10 && <li class="muted">and {number(preview.total - 10)} more</li>}</ul>
        {preview.refusedTotal > 0 && <Notice tone="waiting"><p>{plural(preview.refusedTotal, "position")} would be refused now.</p></Notice>}</>,
      said: "Started.", done: (r: StartedBulk) => { done?.(); if (r.bulk) toast(<>{verb}: started.</>, "active", { href: to.bulk(r.bulk.id), label: "Show its progress" }); },
    });
  } catch (e) { refused(e); }
}

/** define asks for the definition of a reaction, a new one or one that exists. */
export function define(r?: Reaction): void {
  const fields: Field[] = [
    ...(r ? [] : [{ name: "name", label: "Name", required: true, placeholder: "mail" }]),
    { name: "events", label: "Event names", required: true, value: r?.events.join(", ") ?? "*", help: "Separated by commas; * for all." },
    { name: "streams", label: "Streams (RE2 pattern)", value: r?.streams ?? "", placeholder: "^orders-", help: "Empty for all." },
    { name: "source", label: "Source", kind: "select", value: r?.source ?? "event", options: [{ value: "event", label: "streams of programs" }, { value: "history", label: "histories ($…)" }] },
    { name: "start", label: "Start", kind: "select", value: r?.start ?? "beginning", options: [{ value: "beginning", label: "with the first stored event" }, { value: "now", label: "with the next event" }] },
    { name: "handler", label: "Handler", value: r?.handler ?? "", help: "Empty if a client claims its streams." },
    { name: "maxRetries", label: "Retries until it is blocked", kind: "number", value: String(r?.maxRetries ?? 3) },
    { name: "maxDeaths", label: "Crashes until it is blocked", kind: "number", value: String(r?.maxDeaths ?? 5) },
    { name: "blockOnError", label: "Block the stream after the last retry, instead of skipping the event", kind: "checkbox", value: String(r?.blockOnError ?? true) },
    { name: "leaseMs", label: "Lease, in ms", kind: "number", value: String(r?.leaseMs ?? 10_000) },
    { name: "priority", label: "Priority, in seconds", kind: "number", value: String(r?.priority ?? 0) }];
  ask({
    title: r ? "Change " + r.name : "Create a reaction", label: r ? "Change" : "Create", method: "PUT", path: v => p`/reactions/${r?.name ?? v.name ?? ""}`, fields,
    body: r && <p>If it follows fewer streams or events, the positions in streams that it no longer follows are deleted.{r.program && " A Go program serves it: the program stops serving it if its streams or events change."}</p>,
    send: v => ({ events: String(v.events ?? "").split(",").map(e => e.trim()).filter(Boolean), streams: v.streams, source: v.source, start: v.start, handler: v.handler, maxRetries: v.maxRetries, maxDeaths: v.maxDeaths, blockOnError: v.blockOnError, leaseMs: v.leaseMs, priority: v.priority, backoff: r?.backoff }),
    said: x => `${r ? "Changed" : "Created"} ${x.name}.`, done: x => { if (!r) go(to.reaction(x.name)); },
  });
}

/** remove asks before a reaction is deleted with its positions. */
export function remove(r: Reaction): void {
  ask({ title: "Delete " + r.name, label: "Delete", danger: true, method: "DELETE", path: p`/reactions/${r.name}`, said: `Deleted ${r.name}.`, done: () => go("/reactions"),
    body: <p><code>{r.name}</code> and its positions in all streams are deleted. Events that it has not handled are not handled. If it is created again, it starts anew.</p> });
}
