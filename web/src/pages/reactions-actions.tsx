// What can be done to reactions and their positions.
import type { Event, NewBulk, Position, Reaction } from "../api.gen";
import { get, p, query, Refused } from "../core/api";
import { number, plural, sentence } from "../core/format";
import { go, to } from "../core/router";
import { Notice } from "../ui/basic";
import { ask, quick, toast, type Field } from "../ui/dialog";
import { startBulk } from "./operate-part";

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
export function bulk(action: "reaction.unblock" | "reaction.skip", what: Pick<NewBulk, "ids" | "filter">, done?: () => void): void {
  const skip = action === "reaction.skip";
  startBulk({ title: skip ? "Skip the events of blocked streams" : "Unblock streams", label: skip ? "Skip the events of" : "Unblock", danger: skip, make: () => ({ action, ...what }), done,
    said: () => <p>{skip ? "Each of them leaves out the event that blocks it, for good." : "Each of them tries its event again."}</p> });
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
