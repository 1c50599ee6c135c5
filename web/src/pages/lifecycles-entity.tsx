// One entity: why it stands where it stands, what can be done, and what happened to it.
import { batch, type Signal, signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Diagram, Entity, Event, InboxItem, LifecycleDetails, Operation, Refusal, StoredRequest, TimelineEntry } from "../api.gen";
import { get, mayActAs, mayCall, now, p, Refused, session } from "../core/api";
import { useFollow, useGet } from "../core/data";
import { absolute, clockTime, number, plural, sentence } from "../core/format";
import { useKeys } from "../core/keyboard";
import { about, topic, type Watched } from "../core/live";
import { params, setParams, to } from "../core/router";
import { Button, CopyButton, Empty, Facts, Failure, Icon, type IconName, Id, Json, Loading, Notice, Panel, State, Tabs, Time, type Tone, Until } from "../ui/basic";
import { Difference } from "../ui/diff";
import { Act, ask, curlEntry, type Field, Menu } from "../ui/dialog";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { confirm } from "./inbox";
import { outcomeOf, racesOf, RaceView, saw } from "./lifecycles-race";

/** standing gives the status of an entity its look: held, waiting for a worker, uncertain, or none of these. */
export function standing(e: Entity): { tone: Tone; icon: IconName } {
  const c = e.claim;
  return !c ? { tone: "neutral", icon: "dot" } : c.uncertain ? { tone: "uncertain", icon: "question" } : c.holder ? { tone: "active", icon: "lock" } : { tone: "waiting", icon: "clock" };
}

export const entityPath = (lifecycle: string, id: string) => p`/lifecycles/${lifecycle}/entities/${id}`;

/** A step that the config allows to fire, and for whom; without requesters, for everyone. */
export interface Firable { step: string; requesters?: string[]; handler?: string; to?: string }

/** firable returns the steps that the config allows from a status. A config that was sent as YAML is read from its diagram. */
export function firable(l: LifecycleDetails | undefined, d: Diagram | undefined, status: string): Firable[] {
  const list = (v: any): any[] => (Array.isArray(v) ? v : [v]);
  if (l?.config?.steps) return (l.config.steps as any[]).filter(s => list(s.status).includes(status)).map(s => ({
    step: s.step_key, requesters: typeof s.successful_state === "object" ? Object.keys(s.successful_state) : undefined,
    handler: typeof s.action === "object" ? [...new Set(Object.values(s.action as object))].join(", ") : s.action, to: typeof s.successful_state === "object" ? [...new Set(Object.values(s.successful_state as object))].join(", ") : s.successful_state,
  }));
  const found = new Map<string, Firable>();
  for (const e of d?.layout?.edges ?? []) {
    if (e.from !== status || (e.kind !== "claim" && e.kind !== "step")) continue;
    const [, step, by] = /^(.*?)(?: \((.*)\))?$/.exec(e.label)!, was = found.get(step);
    const requesters = by === undefined ? undefined : [...(was?.requesters ?? []), ...by.split(", ")];
    found.set(step, { step, requesters: was && !was.requesters ? undefined : requesters });
  }
  return [...found.values()];
}

/** fire asks for a requester and the input, and fires a step. */
export function fire(e: Entity, f: Firable): void {
  const s = session.value || undefined, mine = f.requesters?.filter(mayActAs) ?? s?.requesters.filter(r => r !== "*") ?? [];
  const requester: Field = mine.length && (f.requesters || !mayActAs("*")) ? { name: "requester", label: "Requester", kind: "select", options: mine.map(value => ({ value, label: value })) } : { name: "requester", label: "Requester", required: true, help: "This step is open to every requester." };
  ask({
    title: `Fire ${f.step}`, label: "Fire", method: "POST", path: `${entityPath(e.lifecycle, e.id)}/steps/${encodeURIComponent(f.step)}`,
    body: <p>{e.lifecycle} <code>{e.id}</code> goes from <strong>{e.status}</strong>{f.to && <> to <strong>{f.to}</strong></>}{f.handler && <>, after handler <code>{f.handler}</code> has acted</>}. The step is refused if the entity is no longer at version {e.version}.</p>,
    fields: [requester, { name: "input", label: "Input", kind: "json", help: "A JSON document for the handler. Optional." }],
    send: v => ({ requester: v.requester, input: v.input, expectedVersion: e.version }),
    said: r => r?.outcome === "success" ? `${f.step}: the entity is now ${r.entity.status}.` : `${f.step}: ${r?.outcome ?? "sent"}.`,
  });
}

/** mayFire reports whether the role and the requesters of the session permit a step. */
export const mayFire = (e: Entity, f: Firable) => mayCall("POST", `${entityPath(e.lifecycle, e.id)}/steps/x`) && (!f.requesters || f.requesters.some(mayActAs));

interface Timeline { entries: Signal<TimelineEntry[] | undefined>; more: Signal<boolean>; error: Signal<Refused | undefined>; reload: () => void; loadMore: () => void }

const keyOf = (t: TimelineEntry) => (t.event ? "e" + t.event.version : t.refusal ? "r" + t.refusal.id : t.effect ? "f" + t.effect.key + t.effect.epoch : "a" + t.answer!.id);

/** useTimeline reads the timeline of an entity, up to 5,000 entries at first, and what is new when the entity changes. */
function useTimeline(lifecycle: string, id: string): Timeline {
  const t = useMemo(() => {
    const entries = signal<TimelineEntry[] | undefined>(undefined), more = signal(false), error = signal<Refused | undefined>(undefined);
    let next: string | null = null, path = "", reading = 0, again = false;
    const page = (cursor: string | null) => get<{ items: TimelineEntry[]; next: string | null }>(`${path}?limit=1000${cursor ? "&cursor=" + encodeURIComponent(cursor) : ""}`);
    const guarded = async (f: (mine: () => boolean) => Promise<void>) => {
      if (reading) { again = true; return; }
      const me = (reading = Math.random()), mine = () => me === reading;
      try { await f(mine); if (mine()) error.value = undefined; } catch (e) { if (mine()) error.value = e instanceof Refused ? e : new Refused("INTERNAL", String(e), 0, ""); }
      if (!mine()) return;
      reading = 0;
      if (again) { again = false; t.reload(); }
    };
    const t = {
      entries, more, error,
      open(to: string) { path = to; reading = 0; next = null; again = false; batch(() => { entries.value = undefined; more.value = false; error.value = undefined; }); void guarded(mine => older(mine, 5)); },
      /** reload reads the first page, and joins it to what is known. */
      reload: () => void guarded(async mine => {
        if (!entries.peek()) return older(mine, 5);
        const first = await page(null);
        if (!mine()) return;
        const known = entries.peek()!, at = first.items.length && first.next ? known.findIndex(x => keyOf(x) === keyOf(first.items.at(-1)!)) : -1;
        batch(() => {
          if (first.next && at >= 0) { const fresh = new Set(first.items.map(keyOf)); entries.value = [...first.items, ...known.slice(at + 1).filter(x => !fresh.has(keyOf(x)))]; return; }
          entries.value = first.items; next = first.next; more.value = next !== null;
        });
      }),
      loadMore: () => void guarded(mine => older(mine, 1)),
    };
    const older = async (mine: () => boolean, pages: number) => {
      for (let i = 0; i < pages; i++) {
        const r = await page(next);
        if (!mine()) return;
        batch(() => { entries.value = [...(entries.peek() ?? []), ...r.items]; next = r.next; more.value = next !== null; });
        if (!next) return;
      }
    };
    return t;
  }, []);
  useEffect(() => t.open(entityPath(lifecycle, id) + "/timeline"), [lifecycle, id]);
  // Refusals are no events of the entity: they are recorded a moment after the write that they lost to, and a late holder's whenever it comes.
  const seen = useMemo(() => ({ timer: 0, refusal: "" }), []), entity = about("entity", `${lifecycle}/${id}`);
  const refused = (m: Watched) => {
    const last = m.state?.races?.find(r => r.stream === `$entity/${lifecycle}/${id}`)?.id ?? seen.refusal, is = last !== seen.refusal;
    seen.refusal = last;
    return is;
  };
  useFollow({ topics: [topic("entity", `${lifecycle}/${id}`), "races"], when: m => refused(m) || entity(m) }, () => {
    if (!seen.timer) seen.timer = window.setTimeout(() => { seen.timer = 0; t.reload(); }, 300);
  });
  useEffect(() => () => { clearTimeout(seen.timer); seen.timer = 0; seen.refusal = ""; }, [lifecycle, id]);
  return t;
}

const views = [{ id: "timeline", label: "Timeline" }, { id: "race", label: "Race" }, { id: "travel", label: "Time travel" }, { id: "answers", label: "Answers and history" }];

/** EntityDetail shows an entity, alone or beside its list. */
export function EntityDetail({ lifecycle, id, details, diagram }: { lifecycle: string; id: string; details?: LifecycleDetails; diagram?: Diagram }) {
  const path = entityPath(lifecycle, id), follow = { topics: [topic("entity", `${lifecycle}/${id}`)], when: about("entity", `${lifecycle}/${id}`) };
  const read = useGet<Entity>(path, follow), timeline = useTimeline(lifecycle, id);
  const e = read.value.value, claim = e?.claim ?? null;
  const operation = useGet<Operation>(claim ? p`/operations/${claim.operation}` : null, follow);
  const view = views.find(v => v.id === params.value.get("view"))?.id ?? "timeline";
  // A renewal is no event. When the lease that is shown ends, it has been renewed or it has expired: read it again.
  useEffect(() => {
    if (!claim?.until) return;
    const timer = setTimeout(() => { read.reload(); operation.reload(); }, Math.max(1000, Date.parse(claim.until) - now() + 500));
    return () => clearTimeout(timer);
  }, [claim?.until, claim?.epoch]);
  const steps = e && !claim ? firable(details, diagram, e.status).filter(f => mayFire(e, f)) : [];
  useEffect(() => e && offer([
    ...steps.map(f => ({ label: `Fire ${f.step} of ${id}`, run: () => fire(e, f) })),
    ...views.map(v => ({ label: `Show ${v.label.toLowerCase()} of ${id}`, run: () => setParams({ view: v.id }) })),
  ]), [e?.version, steps.length]);
  if (!e) return <Detail title={id} close={to.lifecycle(lifecycle)}>{read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />}</Detail>;
  const contested = timeline.entries.value ? racesOf(timeline.entries.value).filter(r => r.refused).length : 0;
  const full = params.value.get("full") === "1";
  const facts = <Panel title="Entity"><Facts of={[["Lifecycle", <a href={to.lifecycle(lifecycle)}>{lifecycle}</a>], ["Version", <a href={`${to.entity(lifecycle, id)}?view=travel&at=${e.version}`}>{number(e.version)}</a>], ["Created", <Time at={e.createdAt} />], ["Changed", <Time at={e.updatedAt} />], ["Stream", <a class="mono" href={to.stream(`$entity/${lifecycle}/${id}`)}>$entity/{lifecycle}/{id}</a>]]} /></Panel>;
  const data = <Panel title="Data" actions={<CopyButton text={JSON.stringify(e.data, null, 2)} what="data" />} flush><Json value={e.data} label="Data" /></Panel>;
  return <Detail title={<span class="mono">{id}</span>} state={<><State of={e.status} {...standing(e)} /><CopyButton text={id} what="id" /></>} close={to.lifecycle(lifecycle)}
    actions={<><Button class="quiet icon-only hide-small" icon={full ? "list" : "right"} aria-label={full ? "Show the list beside it" : "Use the full width"} title={full ? "Show the list beside it" : "Use the full width"} onClick={() => setParams({ full: full ? null : "1" })} />
      {steps.map(f => <Button key={f.step} icon="play" onClick={() => fire(e, f)}>{f.step}</Button>)}
      <Menu label="More actions" entries={[curlEntry("GET", path), { ...curlEntry("GET", path + "/timeline"), label: "Copy the timeline as curl" }]} /></>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    <Why e={e} steps={steps} operation={operation.value.value} entries={timeline.entries.value} />
    <div class="grid entity">{claim ? <><div class="stack">{facts}{data}</div><ClaimPanel e={e} operation={operation.value.value} error={operation.error.value} retry={operation.reload} /></> : <>{facts}{data}</>}</div>
    <Tabs all={views.map(v => (v.id === "race" && contested ? { ...v, label: <>Race <span class="count tone-neutral">{number(contested)}</span></> } : v))} value={view} onChange={v => setParams({ view: v === "timeline" ? null : v })} />
    {timeline.error.value && <Notice tone="danger"><Failure error={timeline.error.value} retry={timeline.reload} /></Notice>}
    {!timeline.entries.value ? (timeline.error.value ? null : <Loading />)
      : view === "race" ? <RaceView entries={timeline.entries.value} entity={e} more={timeline.more.value} now={now} />
      : view === "travel" ? <Travel e={e} entries={timeline.entries.value} />
      : view === "answers" ? <Answers e={e} entries={timeline.entries.value} />
      : <TimelineView entries={timeline.entries.value} timeline={timeline} />}
  </Detail>;
}

/** Why says in one sentence why the entity stands where it stands, and offers the one action. */
function Why({ e, steps, operation, entries }: { e: Entity; steps: Firable[]; operation?: Operation; entries?: TimelineEntry[] }) {
  const inbox = useGet<{ items: InboxItem[] }>("/inbox?kind=uncertainOperation,expiredLease,unservedWork,blockedStream&limit=1000", { topics: ["inbox", topic("entity", `${e.lifecycle}/${e.id}`)], when: m => m.reset || !!m.state?.inbox || m.changes.length > 0 });
  const c = e.claim, stream = `$entity/${e.lifecycle}/${e.id}`;
  const entry = inbox.value.value?.items.find(i => (c && (i.id === c.operation || (operation?.state === "due" && i.kind === "unservedWork" && (i.subject === "handler " + operation.handler || i.subject === "lifecycle " + e.lifecycle)))) || (i.kind === "blockedStream" && (i.subject === stream || i.subject.endsWith("/" + stream))));
  const box = (tone: Tone, icon: IconName, text: ComponentChildren, action?: ComponentChildren) => <section class={"notice tone-" + tone} aria-label="Why" data-why={entry ? entry.kind : ""}><Icon name={icon} /><p class="grow">{text}</p>{action}</section>;
  if (entry) return box(entry.kind === "uncertainOperation" ? "uncertain" : "danger", entry.kind === "uncertainOperation" ? "question" : "warning", entry.reason,
    entry.action.method ? <Act method={entry.action.method} path={entry.action.route!} class="primary" onClick={() => confirm(entry, entry.action, true)}>{entry.action.label}</Act> : <span>{entry.action.label}</span>);
  if (c?.uncertain) return box("uncertain", "question", <>It is not known whether an effect of step “{c.stepKey}” happened{operation?.error ? ": " + operation.error : ""}. Resolve operation <Id id={c.operation} href={to.operation(c.operation)} />.</>);
  if (c && operation?.state === "due") return box("waiting", "clock", <>Waits for handler <a class="link" href={to.handler(operation.handler)}>{operation.handler}</a>, for step “{c.stepKey}”, since <Time at={c.since} />.</>);
  if (c) return box("active", "lock", <>Held by {c.holder || "a worker"} for step “{c.stepKey}” (requester {c.requester}). {c.until && Date.parse(c.until) < now() ? <>The lease ended <Time at={c.until} />, and the janitor releases it.</> : <>The lease ends <Until at={c.until} /> unless it is renewed.</>}</>);
  const last = entries?.find(t => t.event)?.event;
  return box("neutral", "dot", <>{last ? <>{sentence(past(last))} <Time at={last.at} />{last.actor && ` by ${last.actor}`}.</> : `The status is ${e.status}.`} {steps.length ? `It waits for a caller: ${steps.map(f => f.step).join(" or ")}.` : "Nothing is in progress."}</>);
}

/** past says what an event did. */
function past(e: Event): string {
  const d = e.data ?? {}, step = d.step ?? d.note?.step ?? e.name.split("/")[1];
  if (e.name === "created") return `created as ${d.to}`;
  if (e.name.startsWith("settled/")) return `${step} moved it from ${d.from} to ${d.to}`;
  if (e.name.startsWith("failed/")) return `${step} failed and moved it to ${d.to}`;
  if (e.name === "released") return `${step} was released (${d.outcome ?? "no outcome"})${d.message ? ", " + d.message : ""}, and it returned to ${d.to}`;
  if (e.name === "recovered") return `the claim of ${step} expired, and it returned to ${d.to}`;
  return `${e.name}${d.to ? ", " + d.to : ""}`;
}

function ClaimPanel({ e, operation: o, error, retry }: { e: Entity; operation?: Operation; error?: Refused; retry: () => void }) {
  const c = e.claim!;
  const unknown = o?.effects.filter(x => x.state === "begun") ?? [];
  const release = () => ask({ title: "Release the operation", label: "Release", danger: true, touches: 1, method: "POST", path: p`/operations/${c.operation}/release`, fields: [{ name: "reason", label: "Reason" }], send: v => ({ reason: v.reason, epoch: c.epoch }),
    body: <p>{e.lifecycle} <code>{e.id}</code> returns to the status that step {c.stepKey} started from. {c.holder || "The holder"} loses its lease of epoch {c.epoch}, and its later writes are refused. The release is refused if an effect may have happened.</p> });
  const withdraw = () => ask({ title: "Withdraw the operation", label: "Withdraw", danger: true, touches: 1, method: "POST", path: p`/operations/${c.operation}/withdraw`, fields: [{ name: "reason", label: "Reason" }], send: v => ({ reason: v.reason }),
    body: <p>{e.lifecycle} <code>{e.id}</code> returns to the status that step {c.stepKey} started from. If an effect may have happened, the operation becomes uncertain instead.</p> });
  const resolve = () => ask({ title: "Resolve the operation", label: "Resolve", danger: true, touches: 1, method: "POST", path: p`/operations/${c.operation}/resolve`,
    body: <p>Look into the other system first. {unknown.length ? `Say for ${plural(unknown.length, "effect")} whether it happened.` : "The outcome of every effect is known."}</p>,
    fields: [...unknown.map((x, i) => ({ name: "e" + i, label: `${x.name}${x.ordinal ? " " + x.ordinal : ""}: did it happen?`, kind: "select" as const, required: true, options: [{ value: "", label: "choose" }, { value: "no", label: "no, it did not happen" }, { value: "yes", label: "yes, it happened" }], help: "Key: " + x.key })),
      { name: "outcome", label: "Outcome", kind: "select", options: [{ value: "", label: "none: continue the operation" }, { value: "success", label: "success: end it" }, { value: "failure", label: "failure: end it" }, { value: "invalid", label: "invalid: end it" }], help: "A manual claim cannot be continued and needs an outcome." }],
    send: v => ({ effects: unknown.map((x, i) => ({ name: x.name, ordinal: x.ordinal || undefined, happened: v["e" + i] === "yes" })), outcome: v.outcome || undefined }) });
  return <Panel title="Claim" actions={<>
    {o?.state === "held" && <Act method="POST" path={p`/operations/${c.operation}/release`} class="small" onClick={release}>Release</Act>}
    {o?.state === "due" && <Act method="POST" path={p`/operations/${c.operation}/withdraw`} class="small" onClick={withdraw}>Withdraw</Act>}
    {o?.state === "uncertain" && <Act method="POST" path={p`/operations/${c.operation}/resolve`} class="small" onClick={resolve}>Resolve</Act>}</>}>
    <Facts of={[["Operation", <><Id id={c.operation} href={to.operation(c.operation)} /> {o && <State of={o.state} />}</>], ["Step", c.stepKey], ["Requester", c.requester], ["Holder", c.holder || <span class="muted">nobody</span>], ["Epoch", number(c.epoch)], ["Since", <Time at={c.since} />], ["Until", c.until ? <Until at={c.until} /> : <span class="muted">no lease</span>],
      ["Handler", o?.handler ? <a href={to.handler(o.handler)}>{o.handler}</a> : undefined], ["Effects", o?.effects.length ? o.effects.map(x => <div key={x.key}>{x.name} <State of={x.state} tone={x.state === "begun" && c.uncertain ? "uncertain" : undefined} /></div>) : undefined], ["Error", o?.error || undefined]]} />
    {error && error.status !== 404 && <Failure error={error} retry={retry} />}
  </Panel>;
}

/** A part of the timeline as it is shown: similar refusals in a row are one entry. */
interface Shown { key: string; all: TimelineEntry[] }

function fold(entries: TimelineEntry[]): Shown[] {
  const out: Shown[] = [], same = (a: Refusal, b: Refusal) => a.code === b.code && a.action === b.action && a.version === b.version;
  for (const t of entries) {
    const last = out.at(-1)?.all[0].refusal;
    if (t.refusal && last && same(last, t.refusal)) out.at(-1)!.all.push(t);
    else out.push({ key: keyOf(t), all: [t] });
  }
  return out;
}

function TimelineView({ entries, timeline }: { entries: TimelineEntry[]; timeline: Timeline }) {
  const most = useSignal(100), shown = fold(entries);
  return <div class="stack tight">
    <p class="muted">{plural(entries.length, "entry", "entries")}{timeline.more.value ? " loaded" : ""}, newest first, in the order of the database. Refusals are kept for a week.</p>
    <ol class="timeline" aria-label="Timeline">{shown.slice(0, most.value).map(s => <li key={s.key}><details><summary><Line of={s} /></summary>{s.all.length > 1 ? <Refusals of={s.all.map(t => t.refusal!)} /> : <Json value={s.all[0].event ?? s.all[0].refusal ?? s.all[0].effect ?? s.all[0].answer} label="Entry" />}</details></li>)}</ol>
    {shown.length > most.value ? <Button onClick={() => (most.value += 100)}>Show 100 more</Button> : timeline.more.value && <Button onClick={timeline.loadMore}>Load older entries</Button>}
  </div>;
}

function Line({ of: { all } }: { of: Shown }) {
  const { event: e, refusal: r, effect: f, answer: a } = all[0];
  const line = (state: ComponentChildren, text: ComponentChildren, by: ComponentChildren, at: string | null) => <>{state}<span class="grow clip">{text}</span><span class="muted clip timeline-by">{by}</span><span class="muted" title={absolute(at)}>{at ? clockTime(at) : ""}</span><span class="muted timeline-ago"><Time at={at} /></span></>;
  if (e) return line(<State of="event" tone={e.name.startsWith("settled/") || e.name === "created" ? "ok" : e.name.startsWith("failed/") || e.name === "recovered" || e.name === "released" ? "danger" : e.name === "parked" ? "uncertain" : e.name === "claimed" || e.name === "resumed" ? "active" : "neutral"} icon={e.name === "claimed" ? "lock" : e.name.startsWith("settled/") ? "check" : e.name === "parked" ? "question" : "dot"} />,
    <><span class="mono muted">v{e.version}</span> <strong>{e.name}</strong>{e.data?.from && e.data.from !== e.data.to ? ` ${e.data.from} → ${e.data.to}` : ""}{e.data?.message ? `: ${e.data.message}` : ""}</>, [e.actor, e.data?.requester].filter(Boolean).join(" · "), e.at);
  if (r) { const n = all.reduce((n, t) => n + t.refusal!.standsFor, 0); return line(<State of="refused" tone={r.code === "LEASE_LOST" ? "uncertain" : "danger"} />, <><span class="mono muted">v{r.version}</span> <strong>{r.action}</strong> {n > 1 && `× ${number(n)} `}<code>{r.code}</code> saw {saw(r)}</>, all.length > 1 ? plural(new Set(all.map(t => t.refusal!.actor + t.refusal!.requester + t.refusal!.node)).size, "caller") : [r.actor, r.requester].filter(Boolean).join(" · "), r.at); }
  if (f) return line(<State of="effect" tone={f.state === "done" ? "ok" : f.state === "begun" ? "uncertain" : "neutral"} icon="bolt" />, <><strong>{f.name}</strong> {f.state === "done" ? "happened" : f.state === "begun" ? "begun, outcome not known" : "did not happen"}, epoch {f.epoch}</>, "", f.begunAt);
  return line(<State of="answer" tone="neutral" icon="out" />, <><strong>{a!.route}</strong> {told(a!)}</>, "", a!.at);
}

const told = (a: StoredRequest) => (a.state === "operation" ? "answered with the outcome of the operation" : a.state === "inFlight" ? "is in flight" : `answered ${a.status}`);

function Refusals({ of }: { of: Refusal[] }) {
  return <div class="scroller" tabIndex={0} role="region" aria-label="Refusals"><table><thead><tr>{["Caller", "Requester", "Saw", "When", "Node", "Request"].map(t => <th key={t} scope="col">{t}</th>)}</tr></thead>
    <tbody>{of.slice(0, 100).map(r => <tr key={r.id}><td>{r.actor || "no actor"}{r.standsFor > 1 && ` × ${number(r.standsFor)}`}</td><td>{r.requester}</td><td>{saw(r)}</td><td title={absolute(r.at)}>{clockTime(r.at!)}</td><td>{r.node}</td><td>{r.requestId ? <Id id={r.requestId} /> : "–"}</td></tr>)}
      {of.length > 100 && <tr><td colSpan={6}>+ {number(of.slice(100).reduce((n, r) => n + r.standsFor, 0))} more</td></tr>}</tbody></table></div>;
}

/** Travel shows the entity as it was at a version, as a difference to the version before. */
function Travel({ e, entries }: { e: Entity; entries: TimelineEntry[] }) {
  const asked = Number(params.value.get("at") ?? e.version), at = Math.max(0, Math.min(e.version, Number.isInteger(asked) ? asked : e.version));
  const path = entityPath(e.lifecycle, e.id), here = useGet<Entity>(`${path}?at=${at}`), before = useGet<Entity>(at > 0 ? `${path}?at=${at - 1}` : null);
  const move = (n: number) => setParams({ at: String(Math.max(0, Math.min(e.version, n))) });
  useKeys({ ArrowLeft: ["previous version", () => move(at - 1)], ArrowRight: ["next version", () => move(at + 1)], Home: ["first version", () => move(0)], End: ["last version", () => move(e.version)] });
  const event = entries.find(t => t.event?.version === at)?.event, now = here.value.value, was = at > 0 ? before.value.value : undefined, error = here.error.value ?? before.error.value;
  return <div class="stack">
    <div class="row"><Button class="icon-only" icon="left" aria-label="Previous version" disabled={at === 0} onClick={() => move(at - 1)} />
      <input class="grow" type="range" min={0} max={e.version} step={1} value={at} aria-label="Version" aria-valuetext={`version ${at} of ${e.version}`} onInput={x => move(Number(x.currentTarget.value))} />
      <Button class="icon-only" icon="right" aria-label="Next version" disabled={at === e.version} onClick={() => move(at + 1)} /><span class="nowrap" data-version={at}>version {number(at)} of {number(e.version)}</span></div>
    <Panel title={event ? <>{event.name} <span class="muted">{event.data?.from && event.data.from !== event.data.to ? `${event.data.from} → ${event.data.to}` : ""}</span></> : `Version ${at}`} actions={event && <span class="muted">{event.actor || "no actor"} · <Time at={event.at} /> · {clockTime(event.at!)}</span>} flush>
      {error ? <Failure error={error} retry={() => { here.reload(); before.reload(); }} /> : !now || (at > 0 && !was) ? <Loading /> : <Difference label="Difference to the version before" before={at > 0 ? { status: was!.status, data: was!.data } : undefined} after={{ status: now.status, data: now.data }} />}
    </Panel>
    {event && <details><summary class="muted">The event</summary><Json value={event} label="The event" /></details>}
  </div>;
}

interface Row { key: string; at: string | null; caller: string; answer: ComponentChildren; recorded: ComponentChildren; wrong?: string; count: number }

/** rowsOf sets each answer beside what was recorded. */
function rowsOf(entries: TimelineEntry[]): Row[] {
  const races = racesOf(entries), rows: Row[] = [];
  const endOf = (operation: string) => entries.find(t => t.event && (t.event.data?.operation === operation || t.event.data?.note?.operation === operation))?.event;
  for (const s of fold(entries)) {
    const { answer: a, refusal: r } = s.all[0];
    if (a) {
      const end = a.operation ? endOf(a.operation) : undefined, success = !!end?.name.startsWith("settled/"), outcome = a.response?.outcome as string | undefined;
      const recorded = end ? <><span class="mono muted">v{end.version}</span> {end.name} {end.data?.outcome ?? (success ? "success" : "")}</> : <span class="muted">no event of this operation</span>;
      const wrong = outcome === "success" && !success ? `The caller was told success, but the history has ${end ? `“${end.name}”` : "no event of this operation"}.`
        : success && a.status >= 400 ? `The caller was told ${a.status}, but the history has “${end!.name}”.`
        : a.state === "operation" && !end ? "The answer is the outcome of an operation that the history does not have." : undefined;
      rows.push({ key: a.id, at: a.at, caller: a.route, count: 1, wrong, recorded, answer: a.state === "operation" && end ? <>{success ? <State of="success" /> : <State of={outcomeOf([end])} tone="danger" icon="x" />} <span class="muted" title="Each repetition of the request gets the outcome of its operation.">outcome of the operation</span></> : a.state === "inFlight" ? <State of="inFlight" /> : <><State of={outcome ?? String(a.status)} tone={a.status < 400 ? "ok" : "danger"} icon={a.status < 400 ? "check" : "x"} /> {a.withheld && <span class="muted">withheld</span>}</> });
    } else if (r) {
      const n = s.all.reduce((n, t) => n + t.refusal!.standsFor, 0), race = races.find(x => x.refusals.includes(r)), lost = r.code === "LEASE_LOST";
      rows.push({ key: r.id, at: r.at, count: n, caller: n > 1 ? `${r.action} × ${number(n)}` : [r.action, r.actor, r.requester].filter(Boolean).join(" · "), answer: <><State of="refused" /> <code>{r.code}</code></>,
        recorded: <><span class="mono muted">v{r.version}</span> {lost ? <>nothing was written: epoch {r.epoch} had ended</> : <>{r.detail?.status ? `${r.detail.status}; ` : ""}nothing was written</>}{race && <> · <a class="link" href={`?view=race&race=${encodeURIComponent(race.id)}`}>race</a></>}</> });
    }
  }
  return rows;
}

/** Answers sets what callers were told beside what was recorded. A contradiction is red. */
function Answers({ e, entries }: { e: Entity; entries: TimelineEntry[] }) {
  const rows = rowsOf(entries), most = useSignal(100), wrong = rows.filter(r => r.wrong), subject = `${e.lifecycle}/${e.id}`;
  const contradicted = useGet<{ items: Operation[] }>("/operations?state=contradicted&limit=1000", { topics: [topic("entity", subject)], when: about("entity", subject) });
  const mine = contradicted.value.value?.items.filter(o => o.subject === subject) ?? [];
  const acknowledge = (o: Operation) => ask({ title: "Acknowledge the contradiction", label: "Acknowledge", method: "POST", path: p`/operations/${o.id}/acknowledge`, touches: o.contradictions!.length, send: () => ({ contradictions: o.contradictions!.map(c => c.id) }), body: <p>You have compared the late result with the journal and with the other system. {plural(o.contradictions!.length, "contradiction")} will not be listed any more.</p>, done: contradicted.reload });
  const total = wrong.length + mine.length;
  return <div class="stack">
    {contradicted.error.value && <Notice tone="danger"><Failure error={contradicted.error.value} retry={contradicted.reload} /></Notice>}
    {mine.map(o => <section key={o.id} class="notice tone-danger" data-contradiction={o.id}><Icon name="warning" /><div class="grow">{o.contradictions!.map(c => { const known = o.effects.find(x => x.key === c.key); return <p key={c.id}><strong>Contradiction.</strong> A holder that had lost its lease (epoch {c.epoch}, node {c.node}) reported <Time at={c.at} /> that effect “{c.name}” {c.state === "done" ? <>happened{c.result !== undefined && <>, with <code>{JSON.stringify(c.result)}</code></>}</> : "has an unknown outcome"}. The journal of operation <Id id={o.id} href={to.operation(o.id)} /> says: {!known ? "no such effect" : known.state === "begun" ? "begun, outcome not known" : known.state === "done" ? <>done{known.result !== undefined && <>, with <code>{JSON.stringify(known.result)}</code></>}</> : "it did not happen"}.</p>; })}</div><Act method="POST" path={p`/operations/${o.id}/acknowledge`} onClick={() => acknowledge(o)}>Acknowledge</Act></section>)}
    {wrong.map(r => <section key={r.key} class="notice tone-danger" data-contradiction={r.key}><Icon name="warning" /><p class="grow"><strong>Contradiction.</strong> {r.wrong}</p></section>)}
    <Panel title="Answers" flush actions={contradicted.value.value ? total ? <State of={plural(total, "contradiction")} tone="danger" icon="warning" /> : <State of="no contradiction" tone="ok" icon="check" /> : undefined}>
      {rows.length === 0 ? <Empty title="No answers">The answers to requests with an idempotency key, and the refusals that callers got, appear here beside what was recorded.</Empty> : <div class="scroller" tabIndex={0} role="region" aria-label="Answers and what was recorded"><table>
        <thead><tr><th scope="col">When</th><th scope="col">Request</th><th scope="col">Answer that the caller got</th><th scope="col">What was recorded</th></tr></thead>
        <tbody>{rows.slice(0, most.value).map(r => <tr key={r.key} data-answer={r.key} data-count={r.count} class={r.wrong ? "tone-danger contradiction" : ""}><td title={absolute(r.at)}>{r.at ? clockTime(r.at) : "–"}</td><td>{r.caller}</td><td>{r.answer}</td><td>{r.recorded}{r.wrong && <> <State of="contradiction" tone="danger" icon="warning" title={r.wrong} /></>}</td></tr>)}</tbody></table></div>}
      {rows.length > most.value && <div class="body"><Button class="small" onClick={() => (most.value += 100)}>Show 100 more</Button></div>}
    </Panel>
    <p class="muted">Requests without an idempotency key have no stored answer; what they changed is in the timeline.</p>
  </div>;
}
