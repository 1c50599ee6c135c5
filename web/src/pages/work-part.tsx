// Parts that the pages of runs, definitions, approvals, batches, wallets and scopes share.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Event, InboxItem } from "../api.gen";
import { mayCall, p } from "../core/api";
import { type Rows, useFollow, usePages } from "../core/data";
import { number, words } from "../core/format";
import { about, lastState, topic } from "../core/live";
import type { LiveChange } from "../api.gen";
import { params, segments, setParams, to } from "../core/router";
import { Button, Empty, Icon, type IconName, Json, Notice, Panel, Time, type Tone } from "../ui/basic";
import { curlEntry, Menu } from "../ui/dialog";
import { Table } from "../ui/table";
import { confirm } from "./inbox";

/** Shown says how many rows a list has. */
export function Shown({ rows, one, many = one + "s" }: { rows: Rows<any>; one: string; many?: string }) {
  const n = rows.value.value?.length;
  return n === undefined ? null : <span class="shown" role="status">{number(rows.dropped.value + n)}{rows.more.value ? "+" : ""} {n === 1 && !rows.more.value ? one : many}</span>;
}

/** ClearFilters removes filters from the address; it is absent if none is set. */
export function ClearFilters({ names }: { names: string[] }) {
  if (!names.some(n => params.value.get(n))) return null;
  return <Button class="quiet" icon="x" onClick={() => setParams(Object.fromEntries(names.map(n => [n, ""])))}>Clear filters</Button>;
}

/** options returns the values of a filter, and the one in the address even if it is not among them. */
export const options = (name: string, all: string[]) => {
  const here = params.value.get(name);
  return [...new Set(here ? [...all, here] : all)].sort().map(value => ({ value, label: value }));
};

/** useOwnParams removes parameters that belong to one object when another of the same page is opened: the links of a list keep the address's parameters. */
export function useOwnParams(page: string, names: string[]): void {
  useEffect(() => () => { if (segments.value[0] === page) setParams(Object.fromEntries(names.map(n => [n, ""]))); }, []);
}

/** useInboxEntries returns the entries of the inbox that are about a subject, as far as the stream has sent them. */
export function useInboxEntries(fits: (i: InboxItem) => boolean): InboxItem[] {
  const [, again] = useState(0);
  useFollow({ topics: ["inbox"] }, m => { if (m.state?.inbox) again(n => n + 1); });
  return lastState().inbox?.items.filter(fits) ?? [];
}

/** Why says in one sentence why something is where it is, with the actions of its inbox entry. */
export function Why({ tone, icon, text, entry, children }: { tone: Tone; icon: IconName; text: ComponentChildren; entry?: InboxItem; children?: ComponentChildren }) {
  const actions = entry ? [entry.action, ...entry.others].filter(a => a.method && mayCall(a.method, a.route!)) : [];
  return <Notice tone={tone} icon={icon}><div class="why"><p>{text}</p>{children}
    {actions.slice(0, 1).map(a => <Button key={a.label} class="primary" onClick={() => confirm(entry!, a, true)}>{a.label}</Button>)}
    {actions.length > 0 && <Menu label="Other answers" entries={[...actions.slice(1).map(a => ({ label: a.label, run: () => confirm(entry!, a) })), curlEntry(actions[0].method!, actions[0].route!, actions[0].body)]} />}
  </div></Notice>;
}

/** Events lists the history of an object, newest first. The data of the chosen event is below it. */
export function Events({ stream, kind, subject }: { stream: string; kind: LiveChange["kind"]; subject: string }) {
  const rows = usePages<Event>(p`/streams/${stream}/events` + "?backward=true", { topics: [topic(kind, subject)], when: about(kind, subject) });
  const [open, set] = useState<Event>();
  return <Panel title="Events" flush actions={<><Shown rows={rows} one="event" /><a class="link" href={to.stream(stream)}>Stream</a><Menu label="More for the events" entries={[curlEntry("GET", p`/streams/${stream}/events` + "?backward=true")]} /></>}>
    <Table label="Events" rows={rows} id={e => String(e.version)} keys={false} height={(rows.value.value?.length ?? 0) > 8 ? "290px" : "auto"} empty={<Empty title="No events">The history of this object is not retained any more.</Empty>} columns={[
      { title: "#", num: true, cell: e => e.version },
      { title: "Event", cell: e => <button type="button" class="bare link" aria-expanded={open?.version === e.version} onClick={() => set(open?.version === e.version ? undefined : e)}>{words(e.name)}</button> },
      { title: "When", cell: e => <Time at={e.at} /> }, { title: "By", cell: e => e.actor || "–" },
      { title: "Data", class: "mono rest", cell: e => <span class="muted" title={JSON.stringify(e.data)}>{brief(e.data)}</span> }]} />
    {open && <div class="body"><p class="row"><strong>{words(open.name)}</strong><span class="muted">version {open.version} · <Time at={open.at} /></span><span class="grow" /><Button class="quiet small" icon="x" onClick={() => set(undefined)}>Close</Button></p><Json value={open.data} label={"Data of event " + open.version} /></div>}
  </Panel>;
}

/** brief writes a document in one short line. */
export function brief(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  const text = Array.isArray(value) ? JSON.stringify(value) : Object.entries(value).filter(([k]) => k !== "status").map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`).join(", ");
  return text.length > 160 ? text.slice(0, 160) + "…" : text;
}

export const Missing = ({ what }: { what: string }) => <p class="row muted"><Icon name="question" />{what}</p>;
