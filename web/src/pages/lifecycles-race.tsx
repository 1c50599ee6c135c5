// The race view: who tried to change an entity at the same moment, who won, and what each of the others saw.
//
// A race is what the API groups in GET races: an operation, or an event without one, and the writes that were refused because of it.
// The order is the database's order, in which the timeline lists its entries; no clock decides it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Entity, Event, Refusal, StoredRequest, TimelineEffect, TimelineEntry } from "../api.gen";
import { absolute, clockTime, duration, number, plural, short } from "../core/format";
import { params, setParams, to } from "../core/router";
import { Button, Empty, Id, Notice, Panel, State, type Tone } from "../ui/basic";

const operationOf = (e?: Event): string => e?.data?.operation ?? "";

export interface Race {
  /** The operation, or v and the version of the event that won. */
  id: string;
  operation: string;
  winner?: Event;
  /** All events of the operation, in order. */
  events: Event[];
  refusals: Refusal[];
  /** The number of refusals, with those that the recorded ones stand for. */
  refused: number;
}

/** racesOf groups the entries of a timeline (newest first) into races, the latest first. */
export function racesOf(entries: TimelineEntry[]): Race[] {
  const byVersion = new Map<number, Event>(), all = new Map<string, Race>();
  const race = (id: string, operation: string): Race => {
    let r = all.get(id);
    if (!r) all.set(id, (r = { id, operation, events: [], refusals: [], refused: 0 }));
    return r;
  };
  for (const { event } of entries) if (event) byVersion.set(event.version, event);
  for (const { event, refusal } of entries) {
    if (event && operationOf(event)) race(operationOf(event), operationOf(event)).events.unshift(event);
    if (!refusal) continue;
    const won = byVersion.get(refusal.version), operation = operationOf(won) || (refusal.code === "CLAIM_FAILED" ? refusal.operation : "");
    const r = race(operation || "v" + refusal.version, operation);
    r.refusals.unshift(refusal);
    r.refused += refusal.standsFor;
    if (!operation && won && !r.events.length) r.events.push(won);
  }
  for (const r of all.values()) r.winner = r.events[0];
  return [...all.values()];
}

const late = (r: Refusal) => r.code === "LEASE_LOST";
const ms = (at: string | null) => (at ? Date.parse(at) : NaN);
const count = (all: Refusal[]) => all.reduce((n, r) => n + r.standsFor, 0);

/** How an event ends or changes a claim. */
const ends: Record<string, [string, Tone]> = {
  released: ["released", "danger"], recovered: ["recovered: the lease had expired", "danger"], parked: ["parked: the outcome is unknown", "uncertain"], interrupted: ["interrupted, will be resumed", "waiting"], lost: ["handed out, no response", "waiting"],
  queued: ["queued for a worker", "waiting"], resumed: ["resumed", "active"], adopted: ["adopted", "active"], claimed: ["claimed", "active"], created: ["created", "ok"],
};
function look(e: Event): [string, Tone] {
  if (e.name.startsWith("settled/")) return ["settled" + (e.data?.outcome ? ": " + e.data.outcome : ""), "ok"];
  if (e.name.startsWith("failed/")) return ["failed", "danger"];
  return ends[e.name] ?? [e.name, "neutral"];
}
const over = (e: Event) => e.name.startsWith("settled/") || e.name.startsWith("failed/") || e.name === "released" || e.name === "recovered";

/** outcomeOf says how an operation stands after its last event. */
export function outcomeOf(events: Event[]): string {
  const last = events.at(-1);
  return last ? look(last)[0] : "unknown: the event is no longer retained";
}

const who = (actor: string) => actor || "no actor";

/** saw says what a refused caller saw at its moment. */
export function saw(r: Refusal): string {
  const d = r.detail ?? {};
  if (late(r)) return `its lease of epoch ${r.epoch} had ended; version ${r.version}`;
  return [d.status, "version " + r.version, d.holder ? "held by " + d.holder : "", d.until ? "until " + clockTime(d.until) : ""].filter(Boolean).join(", ");
}

interface Mark { x: number; tone: Tone; glyph: "won" | "lost" | "late" | "event" | "effect" | "renewed"; title: string; text?: string; at: number }
interface Bar { from: number; to: number; tone: Tone; open: boolean; dashed: boolean; text: string }
interface Lane { id: string; name: string; sub: string; kind: "won" | "late" | "lost" | "fold"; bars: Bar[]; marks: Mark[] }
interface Drawing { lanes: Lane[]; width: number; cas: number; ticks: { x: number; text: string }[] }

const shownLosers = 24, laneHeight = 28, top = 24, margin = 20;

/** What happened at a moment of the drawing. */
type Moment = { at: number; event?: Event; refusal?: Refusal; effect?: TimelineEffect; fold?: "from" | "to"; now?: true };

/** draw places the moments of a race. Their distance grows with the logarithm of the time between them, so that a millisecond and a minute are both readable. */
export function draw(race: Race, entries: TimelineEntry[], entity: Entity, room: number, now: number): Drawing {
  const lost = race.refusals.filter(r => !late(r)), own = new Set([race.operation, ...race.refusals.filter(late).map(r => r.operation)].filter(Boolean));
  const shown = new Set(lost.slice(0, lost.length > shownLosers + 1 ? shownLosers : lost.length)), folded = lost.filter(r => !shown.has(r)), inRace = new Set(race.refusals);
  const moments: Moment[] = [], effects: TimelineEffect[] = [];
  for (const { event, refusal, effect } of [...entries].reverse()) {
    if (event && (own.has(operationOf(event)) || race.events.includes(event))) moments.push({ at: ms(event.at), event });
    else if (refusal && inRace.has(refusal)) {
      if (late(refusal) || shown.has(refusal)) moments.push({ at: ms(refusal.at), refusal });
      else if (refusal === folded[0]) moments.push({ at: ms(refusal.at), refusal, fold: "from" });
      else if (refusal === folded.at(-1)) moments.push({ at: ms(refusal.at), refusal, fold: "to" });
    } else if (effect && own.has(effect.operation)) effects.push(effect);
  }
  // The timeline has an effect before the event that ended its attempt; here it is drawn when it was begun.
  for (const effect of effects) {
    const begun = moments.findIndex(m => m.event && operationOf(m.event) === effect.operation);
    let i = begun + 1;
    while (i < moments.length && moments[i].at <= ms(effect.begunAt) && !(moments[i].event && operationOf(moments[i].event) === effect.operation && over(moments[i].event!))) i++;
    moments.splice(i, 0, { at: ms(effect.begunAt), effect });
  }
  const claim = entity.claim && own.has(entity.claim.operation) ? entity.claim : null;
  if (claim && !claim.uncertain) moments.push({ at: now, now: true });

  const steps = moments.map((m, i) => (i ? 14 + 22 * Math.log10(1 + Math.max(0, m.at - moments[i - 1].at)) : 0));
  const natural = steps.reduce((n, s) => n + s, 0), textRoom = Math.min(240, room * .5), scale = natural ? Math.min(3, Math.max(1, (room - 2 * margin - textRoom) / natural)) : 1;
  const xs: number[] = [];
  steps.forEach((s, i) => xs.push((xs[i - 1] ?? margin) + s * scale));
  const won = moments.findIndex(m => m.event && m.event === race.winner), t0 = won >= 0 ? moments[won].at : moments[0]?.at ?? 0;

  const lanes: Lane[] = [];
  const lane = (id: string, kind: Lane["kind"], name: string, sub: string): Lane => {
    let l = lanes.find(x => x.id === id);
    if (!l) lanes.push((l = { id, kind, name, sub, bars: [], marks: [] }));
    return l;
  };
  const claimant = (operation: string, e?: Event): Lane => {
    const first = operation === race.operation;
    return lane("op:" + operation, first ? "won" : "late", who(e?.actor ?? ""), [e?.data?.requester ?? e?.data?.note?.requester, e?.data?.holder && e.data.holder !== e.actor ? e.data.holder : ""].filter(Boolean).join(" · "));
  };
  if (race.winner) claimant(race.operation, race.winner);
  const open = new Map<string, { x: number; e: Event }>();
  let seen: { until?: string; holder?: string } | undefined;
  moments.forEach((m, i) => {
    const x = xs[i];
    if (m.event) {
      const e = m.event, operation = operationOf(e), [text, tone] = look(e), l = claimant(operation, e), before = open.get(operation);
      if (before) l.bars.push(barOf(before.e, before.x, x));
      over(e) || !operation ? open.delete(operation) : open.set(operation, { x, e });
      const first = e === race.winner;
      l.marks.push({ x, at: m.at, tone: first ? "ok" : tone, glyph: first ? "won" : "event", text: over(e) || e.name === "parked" ? text : undefined,
        title: `${first ? "Won the compare-and-swap: " : ""}${e.name}, version ${e.version}${e.data?.from ? `, ${e.data.from} → ${e.data.to}` : ""}${e.data?.epoch ? `, epoch ${e.data.epoch}` : ""}${e.data?.message ? ", " + e.data.message : ""}` });
    } else if (m.effect) {
      const f = m.effect;
      claimant(f.operation).marks.push({ x, at: m.at, tone: f.state === "done" ? "ok" : f.state === "begun" ? "uncertain" : "neutral", glyph: "effect", title: `Effect ${f.name} begun, epoch ${f.epoch}; ${f.state === "begun" ? "its outcome is not known" : f.state === "done" ? "it happened" : "it did not happen"}` });
    } else if (m.refusal && m.fold) {
      const l = lane("fold", "fold", `+ ${plural(count(folded), "more refusal")}`, codes(folded));
      if (m.fold === "from") l.bars.push({ from: x, to: x + 12, tone: "danger", open: false, dashed: false, text: "" });
      else l.bars[0].to = x;
      l.marks.push({ x, at: m.at, tone: "danger", glyph: "lost", title: `${m.fold === "from" ? "First" : "Last"} of ${plural(count(folded), "more refusal")}: ${m.refusal.code}, saw ${saw(m.refusal)}`, text: m.fold === "to" || folded.length === 1 ? codes(folded) : undefined });
    } else if (m.refusal) {
      const r = m.refusal, isLate = late(r);
      const l = isLate ? lanes.find(x => x.id === "op:" + r.operation) ?? lane("late:" + r.operation + r.actor, "late", who(r.actor), [r.requester, r.node].filter(Boolean).join(" · ")) : lane("r:" + r.id, "lost", who(r.actor), [r.requester, r.node].filter(Boolean).join(" · "));
      const more = r.standsFor > 1 ? ` × ${number(r.standsFor)}` : "";
      l.marks.push({ x, at: m.at, tone: isLate ? "uncertain" : "danger", glyph: isLate ? "late" : "lost", text: isLate ? `${r.action} refused: ${r.code}, epoch ${r.epoch}` : `${r.code}${more}, saw ${[r.detail?.status, "v" + r.version].filter(Boolean).join(" ")}`, title: `${isLate ? "Late write refused: " : "Lost: "}${r.action}, ${r.code}${more}, saw ${saw(r)}` });
      // Neither a renewal nor a worker that takes the task is an event; the callers that are refused see both.
      if (isLate || r.operation !== race.operation) return;
      const { until, holder } = r.detail ?? {}, changed = seen && until && seen.until !== until ? (seen.holder === holder ? "Renewed" : `Taken by ${holder}`) : "";
      if (changed) lanes.find(x => x.id === "op:" + race.operation)?.marks.push({ x, at: m.at, tone: "active", glyph: "renewed", title: `${changed} before this moment: the lease now lasts until ${clockTime(until)}` });
      seen = { until, holder };
    } else if (m.now && claim) {
      const b = open.get(claim.operation);
      if (b) claimant(claim.operation).bars.push({ ...barOf(b.e, b.x, x), open: true });
      open.delete(claim.operation);
    }
  });
  const end = (xs.at(-1) ?? margin) + margin;
  for (const [operation, b] of open) lanes.find(l => l.id === "op:" + operation)?.bars.push({ ...barOf(b.e, b.x, Math.max(b.x + 12, end - margin)), open: true });

  const ticks: Drawing["ticks"] = [];
  moments.forEach((m, i) => { if (!ticks.length || xs[i] - ticks.at(-1)!.x > 64) ticks.push({ x: xs[i], text: i === won ? "0" : offset(m.at - t0) }); });
  // A text that would reach into the next mark of its lane is left out; the mark has it in its title, and the first mark has that of a bar.
  for (const l of lanes) for (const b of l.bars) if (l.marks.some(m => m.x > b.from + 8 && m.x < b.from + 20 + 6.5 * b.text.length)) b.text = "";
  for (const l of lanes) l.marks.sort((a, b) => a.x - b.x).forEach((m, i) => { const next = l.marks[i + 1]; if (m.text && next && next.x - m.x < 20 + 6 * m.text.length) m.text = undefined; });
  const kinds = { won: 0, late: 1, lost: 2, fold: 3 };
  lanes.sort((a, b) => kinds[a.kind] - kinds[b.kind]);
  return { lanes, width: Math.max(room, end + textRoom), cas: won >= 0 ? xs[won] : NaN, ticks };
}

const offset = (d: number) => (d === 0 ? "+0 ms" : (d < 0 ? "−" : "+") + (Math.abs(d) < 1000 ? Math.abs(d) + " ms" : Math.abs(d) < 60_000 ? (Math.abs(d) / 1000).toFixed(1) + " s" : duration(Math.abs(d))));

function barOf(e: Event, from: number, to: number): Bar {
  const waits = e.name === "queued" || e.name === "interrupted" || e.name === "lost";
  return { from, to, tone: e.name === "parked" ? "uncertain" : waits ? "waiting" : "active", open: false, dashed: waits || e.name === "parked", text: [e.data?.step, e.data?.epoch ? "epoch " + e.data.epoch : ""].filter(Boolean).join(", ") };
}

/** codes writes the codes of refusals with their numbers. */
function codes(all: Refusal[]): string {
  const by = new Map<string, number>();
  for (const r of all) by.set(r.code, (by.get(r.code) ?? 0) + r.standsFor);
  return [...by].map(([code, n]) => (by.size > 1 ? `${code} × ${number(n)}` : code)).join(", ");
}

/** RaceView shows one race of an entity: as a drawing, and as a table with the same numbers. */
export function RaceView({ entries, entity, more, now }: { entries: TimelineEntry[]; entity: Entity; more: boolean; now: () => number }) {
  const races = racesOf(entries), asked = params.value.get("race");
  const race = races.find(r => r.id === asked) ?? races.find(r => r.refused > 0) ?? races[0];
  if (!race) return <Empty title="No race" command={`holdfast fire ${entity.lifecycle} ${entity.id} STEP --as REQUESTER`}>Nobody has competed for this entity. If several callers fire a step at the same time, the one that won and those that were refused appear here.</Empty>;
  const i = races.indexOf(race), lost = race.refusals.filter(r => !late(r)), lates = race.refusals.filter(late);
  const label = (r: Race) => `${r.winner ? clockTime(r.winner.at!) : "?"} ${r.winner?.data?.step ?? r.winner?.data?.note?.step ?? r.winner?.name ?? "operation"} · ${plural(r.refused, "refusal")}`;
  return <div class="stack">
    <div class="row wrap">
      <label class="row">Race <select value={race.id} onChange={e => setParams({ race: e.currentTarget.value })}>{races.map(r => <option key={r.id} value={r.id}>{label(r)}</option>)}</select></label>
      <Button class="icon-only" icon="left" aria-label="Later race" disabled={i === 0} onClick={() => setParams({ race: races[i - 1].id })} />
      <Button class="icon-only" icon="right" aria-label="Earlier race" disabled={i === races.length - 1} onClick={() => setParams({ race: races[i + 1].id })} />
      <span class="muted">{number(i + 1)} of {number(races.length)}{more ? "+" : ""}</span>
    </div>
    <Panel title={<>{race.winner ? <State of={race.refused ? "1 won" : "uncontested"} tone="ok" icon="check" /> : <State of="winner not retained" tone="neutral" />} {lost.length > 0 && <State of={`${number(count(lost))} lost`} tone="danger" icon="x" />} {lates.length > 0 && <State of={`${number(count(lates))} late`} tone="uncertain" icon="clock" />}</>}
      actions={race.operation ? <span class="muted">operation <Id id={race.operation} href={to.operation(race.operation)} /></span> : undefined} flush>
      <Lanes race={race} entries={entries} entity={entity} now={now} />
    </Panel>
    <Callers race={race} lost={lost} lates={lates} answers={entries.flatMap(e => (e.answer && e.answer.operation === (race.operation || race.winner?.data?.note?.operation) ? [e.answer] : []))} />
    {more && <Notice tone="waiting"><p>Older entries are not loaded yet, so the earliest race may be incomplete. Load them in the timeline.</p></Notice>}
  </div>;
}

function Lanes({ race, entries, entity, now }: { race: Race; entries: TimelineEntry[]; entity: Entity; now: () => number }) {
  const place = useRef<HTMLDivElement>(null), room = useSignal(560), said = useSignal("");
  useEffect(() => {
    const el = place.current!, size = () => (room.value = Math.max(240, el.clientWidth - (el.firstElementChild as HTMLElement).offsetWidth));
    size();
    const sized = new ResizeObserver(size);
    sized.observe(el);
    return () => sized.disconnect();
  }, []);
  const d = draw(race, entries, entity, room.value, now()), height = top + d.lanes.length * laneHeight + 8;
  return <>
    <div class="race" ref={place} tabIndex={0} role="region" aria-label="Race, one lane for each caller">
      <ul class="race-callers" aria-hidden="true">{d.lanes.map(l => <li key={l.id} class={"race-" + l.kind} title={`${l.name} ${l.sub}`}><span class="clip">{l.name}</span> <span class="muted clip">{l.sub}</span></li>)}</ul>
      <svg width={d.width} height={height} role="group" aria-label="Moments of the race, in the order of the database">
        {d.ticks.map(t => <g key={t.x} class="race-tick"><line x1={t.x} x2={t.x} y1={top - 4} y2={height} /><text x={t.x} y={12}>{t.text}</text></g>)}
        {d.lanes.map((l, n) => <line key={l.id} class="race-line" x1={0} x2={d.width} y1={top + (n + 1) * laneHeight} y2={top + (n + 1) * laneHeight} />)}
        {!Number.isNaN(d.cas) && <line class="race-cas" x1={d.cas} x2={d.cas} y1={top - 4} y2={height} />}
        {d.lanes.map((l, n) => <g key={l.id} transform={`translate(0 ${top + n * laneHeight})`}>
          {l.bars.map((b, k) => <g key={k} class={"race-bar tone-" + b.tone + (b.dashed ? " dashed" : "")}><rect x={b.from} y={6} width={Math.max(2, b.to - b.from)} height={16} rx={3} />{b.to - b.from > 6.5 * b.text.length + 24 && <text x={b.from + 12} y={14}>{b.text}</text>}{b.open && <path d={`M${b.to} 6l5 8-5 8`} />}</g>)}
          {l.marks.map((m, k) => <g key={k} class={"race-mark tone-" + m.tone} tabIndex={0} role="img" aria-label={`${m.title}, ${absolute(m.at)}`} onFocus={() => (said.value = `${clockTime(m.at)} ${m.title}`)} onPointerEnter={() => (said.value = `${clockTime(m.at)} ${m.title}`)}>
            <title>{`${absolute(m.at)}\n${m.title}`}</title><rect class="hit" x={m.x - 8} y={2} width={16} height={24} /><Glyph kind={m.glyph} x={m.x} />{m.text && <text x={m.x + 12} y={14}>{m.text}</text>}</g>)}
        </g>)}
      </svg>
    </div>
    <p class="race-said muted clip" title={said.value}>{said.value || "Point at a mark, or move to it with Tab, to read what happened."}</p>
  </>;
}

function Glyph({ kind, x }: { kind: Mark["glyph"]; x: number }) {
  switch (kind) {
    case "won": return <><circle cx={x} cy={14} r={7} class="solid" /><path class="on" d={`M${x - 3} 14.2l2.2 2.2 4-4.6`} /></>;
    case "lost": return <path d={`M${x} 5v18M${x - 3.5} 10.5l7 7M${x + 3.5} 10.5l-7 7`} />;
    case "late": return <><circle cx={x} cy={14} r={6} /><path d={`M${x} 10.5v4l2.5 1.5M${x} 3v5`} /></>;
    case "effect": return <path class="solid" d={`M${x} 8l6 6-6 6-6-6z`} />;
    case "renewed": return <path d={`M${x} 3v22M${x - 4} 7l4-4 4 4`} />;
    case "event": return <path d={`M${x} 3v22`} />;
  }
}

const firstRows = 50;

/** Callers is the race as a table. Its rows add up to what the API has recorded. */
function Callers({ race, lost, lates, answers }: { race: Race; lost: Refusal[]; lates: Refusal[]; answers: StoredRequest[] }) {
  const most = useSignal(firstRows), w = race.winner, rest = lost.slice(most.value), by = new Map<string, Refusal[]>();
  for (const r of rest) by.set(r.code, [...(by.get(r.code) ?? []), r]);
  const row = (r: Refusal) => <tr key={r.id} {...(late(r) ? { "data-race-late": r.id } : { "data-race-loser": r.id })} data-count={r.standsFor} data-code={r.code}>
    <td><State of={late(r) ? "late" : "lost"} tone={late(r) ? "uncertain" : "danger"} icon={late(r) ? "clock" : "x"} />{r.standsFor > 1 && ` × ${number(r.standsFor)}`}</td><td>{who(r.actor)}</td><td>{r.requester || "–"}</td><td>{r.action}</td><td><code>{r.code}</code></td><td>{saw(r)}</td><td title={absolute(r.at)}>{r.at ? clockTime(r.at) : "–"}</td><td>{r.node}</td><td>{r.requestId ? <Id id={r.requestId} /> : "–"}</td></tr>;
  return <Panel title="Callers" flush actions={<span class="muted">{plural(race.refused, "refused write")}, in the order of the database</span>}>
    <div class="scroller" tabIndex={0} role="region" aria-label="Callers"><table>
      <thead><tr>{["Result", "Caller", "Requester", "Action", "Code", "Saw", "When", "Node", "Request"].map(t => <th key={t} scope="col">{t}</th>)}</tr></thead>
      <tbody>
        {w && <tr data-race-winner={w.version} data-count={1}><td><State of="won" tone="ok" icon="check" /></td><td>{who(w.actor)}</td><td>{w.data?.requester ?? w.data?.note?.requester ?? "–"}</td><td>{w.data?.step ?? w.data?.note?.step ?? w.name}</td><td>{outcomeOf(race.events)}</td><td>{w.data?.from ? `${w.data.from} → ${w.data.to}, ` : ""}version {w.version}</td><td title={absolute(w.at)}>{w.at ? clockTime(w.at) : "–"}</td><td>{w.data?.holder ?? "–"}</td><td>{answers.length ? <span title={answers[0].id}>{short(answers[0].id, 24)}</span> : <span class="muted" title="An event records no request id; a request with an idempotency key is listed here.">–</span>}</td></tr>}
        {lates.map(row)}
        {lost.slice(0, most.value).map(row)}
        {[...by].map(([code, all]) => <tr key={code} data-race-loser="folded" data-count={count(all)} data-code={code}><td><State of="lost" tone="danger" icon="x" /></td><td colSpan={3}>+ {plural(count(all), "more refusal")}</td><td><code>{code}</code></td><td /><td>{clockTime(all[0].at!)} – {clockTime(all.at(-1)!.at!)}</td><td colSpan={2} /></tr>)}
      </tbody></table></div>
    {rest.length > 0 && most.value < 200 && <div class="body"><Button class="small" onClick={() => (most.value = Math.min(200, most.value + 75))}>Show {number(Math.min(75, rest.length, 200 - most.value))} more</Button></div>}
  </Panel>;
}

