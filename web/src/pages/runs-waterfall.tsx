// The waterfall of a run: one bar per visit of a step, with its attempts, on one time axis.
import type { Event, Run, RunStep } from "../api.gen";
import { now } from "../core/api";
import { clockTime, duration, plural, tick } from "../core/format";
import { Icon, type IconName, type Tone, toneOf } from "../ui/basic";

/** precise writes a length of time to the second, where duration has minutes only. */
export const precise = (ms: number) => (ms >= 90_000 && ms < 3_600_000 ? `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s` : duration(ms));

interface Segment { kind: "attempt" | "wait" | "queued" | "uncertain"; from: number; to: number; open: boolean; tone: Tone; icon?: IconName; title: string; n?: number }
export interface Visit { key: string; name: string; visit: number; step?: RunStep; segments: Segment[] }

/** visitsOf builds the visits of a run from its steps and its events, which are in order. What the history no longer has comes from the steps. */
export function visitsOf(run: Run, steps: RunStep[], events: Event[]): Visit[] {
  const all = new Map<string, Visit>();
  const of = (name: string, visit: number) => {
    const key = name + "/" + visit;
    let v = all.get(key);
    if (!v) all.set(key, (v = { key, name, visit, segments: [] }));
    return v;
  };
  for (const s of steps) of(s.name, s.visit).step = s;
  const first = Date.parse(run.createdAt ?? "");
  let ended = first;
  const open = (v: Visit, at: number, s: Omit<Segment, "from" | "to" | "open">) => v.segments.push({ ...s, from: at, to: at, open: true });
  const close = (v: Visit, at: number, as: Partial<Segment> = {}) => {
    const s = v.segments.at(-1);
    if (!s?.open) return;
    s.to = at; s.open = false;
    if (s.kind === "attempt") { Object.assign(s, { tone: as.tone, icon: as.icon }); if (as.title) s.title += ": " + as.title; }
    if (s.kind === "attempt" && s.n === undefined && s.from === s.to) v.segments.pop(); // a step of the engine that began to wait at once
  };
  for (const e of events) {
    const d = (e.data ?? {}) as Record<string, any>, at = Date.parse(e.at ?? "");
    if (e.name === "retried" || e.name === "resumed") ended = at;
    if (typeof d.step !== "string" || typeof d.visit !== "number") continue;
    const v = of(d.step, d.visit), pause = d.retryInMs ?? d.lookInMs;
    switch (e.name) {
      case "stepStarted": case "stepResumed":
        close(v, at);
        if (!v.segments.length && at - ended > 1) v.segments.push({ kind: "queued", from: ended, to: at, open: false, tone: "neutral", title: `due, until it was taken after ${duration(at - ended)}` });
        open(v, at, { kind: "attempt", tone: "active", n: d.attempt, title: d.attempt ? `attempt ${d.attempt}` : "evaluated" });
        break;
      case "stepWaiting":
        close(v, at, d.error ? { tone: "danger", icon: "x", title: d.error } : { tone: "neutral" });
        open(v, at, { kind: "wait", tone: "waiting", title: pause ? `waits ${duration(pause)} before the next attempt` : "waits" });
        break;
      case "stepDied": close(v, at, { tone: "danger", icon: "warning", title: `crashed: the lease of ${d.holder ?? "its holder"} expired` }); open(v, at, { kind: "wait", tone: "waiting", title: "waits for the next attempt after a crash" }); break;
      case "stepLost": close(v, at, { tone: "neutral", icon: "question", title: `handed out to ${d.holder ?? "a worker"}, but no response arrived` }); open(v, at, { kind: "wait", tone: "waiting", title: "waits to be handed out again" }); break;
      case "stepReleased": close(v, at, { tone: "neutral", icon: "undo", title: "released" }); open(v, at, { kind: "wait", tone: "waiting", title: "waits to be taken again" }); break;
      case "stepUncertain": close(v, at, { tone: "uncertain", icon: "question", title: d.error }); open(v, at, { kind: "uncertain", tone: "uncertain", title: "uncertain: waits for a person" }); break;
      case "stepResolved": close(v, at); open(v, at, { kind: "wait", tone: "waiting", title: `resolved${d.by ? " by " + d.by : ""}` }); break;
      case "stepCompleted": close(v, at, { tone: "ok", icon: "check", title: "completed" }); ended = at; break;
      case "stepFailed": close(v, at, { tone: "danger", icon: "x", title: d.error }); ended = at; break;
      case "stepCancelled": close(v, at, { tone: "neutral", icon: "stop", title: "cancelled" }); ended = at; break;
    }
  }
  const last = Date.parse(run.finishedAt ?? "") || now();
  for (const v of all.values()) {
    const s = v.step, from = Date.parse(s?.startedAt ?? "");
    if (!v.segments.length && from) v.segments.push({ kind: "attempt", from, to: Date.parse(s!.finishedAt ?? "") || last, open: !s!.finishedAt, tone: toneOf(s!.status), n: s!.attempts || undefined, title: plural(s!.attempts, "attempt") });
    if (!v.segments.length && s?.status === "PENDING") v.segments.push({ kind: "queued", from: ended, to: last, open: true, tone: "neutral", title: "due, not taken yet" });
    for (const x of v.segments) if (x.open) x.to = Math.max(x.from, last);
  }
  return [...all.values()].sort((a, b) => (a.segments[0]?.from ?? Infinity) - (b.segments[0]?.from ?? Infinity));
}

/** A scale maps times to parts of the width. Waits can be shortened, because a wait of days would hide attempts of milliseconds. */
export function scaleOf(visits: Visit[], from: number, to: number, shorten?: boolean) {
  const busy = visits.flatMap(v => v.segments.filter(s => s.kind === "attempt")).sort((a, b) => a.from - b.from);
  const points = [...new Set([from, to, ...visits.flatMap(v => v.segments.flatMap(s => [s.from, s.to]))].filter(t => t >= from && t <= to))].sort((a, b) => a - b);
  const work = busy.reduce((n, s) => n + s.to - s.from, 0), cap = Math.max(work / 3, 20);
  const parts = points.slice(1).map((t, i) => ({ from: points[i], to: t, busy: busy.some(s => s.from <= points[i] && s.to >= t) }));
  const size = (x: (typeof parts)[number], short: boolean) => (short && !x.busy ? Math.min(cap, x.to - x.from) : x.to - x.from);
  const sum = (short: boolean) => parts.reduce((n, x) => n + size(x, short), 0) || 1;
  const worth = work > 0 && sum(false) > 3 * sum(true), short = worth && shorten !== false, total = sum(short);
  let at = 0;
  const knots = [{ t: from, x: 0 }, ...parts.map(x => ({ t: x.to, x: (at += size(x, short)) / total }))];
  const between = (v: number, a: "t" | "x", b: "t" | "x") => {
    const i = Math.max(1, knots.findIndex(k => k[a] >= v)), l = knots[i - 1], r = knots[i] ?? l;
    return r[a] === l[a] ? r[b] : l[b] + ((v - l[a]) / (r[a] - l[a])) * (r[b] - l[b]);
  };
  return { worth, short, x: (t: number) => between(Math.min(to, Math.max(from, t)), "t", "x"), time: (x: number) => between(x, "x", "t") };
}

const most = 200;

export function Waterfall({ run, visits, chosen, choose, shorten }: { run: Run; visits: Visit[]; chosen?: string; choose: (key: string) => void; shorten: boolean }) {
  if (!run.finishedAt) tick.value; // what is open grows
  const from = Date.parse(run.createdAt ?? ""), to = Math.max(Date.parse(run.finishedAt ?? "") || now(), from + 1);
  const scale = scaleOf(visits, from, to, shorten), rows = visits.slice(-most), total = to - from;
  return <div class="waterfall scroller" tabIndex={0} role="region" aria-label="Attempts over time"><table>
    <thead><tr><th scope="col">Step</th><th scope="col" class="axis-cell"><span class="hidden">Time since the start</span><div class="axis">{[0, 1 / 3, 2 / 3, 1].map(x => <span key={x} style={{ left: x * 100 + "%" }} title={clockTime(scale.time(x))}>{x === 0 ? clockTime(from).slice(0, 8) : "+" + precise(scale.time(x) - from)}</span>)}</div></th><th scope="col" class="num">Took</th></tr></thead>
    <tbody>{rows.map(v => {
      const took = v.segments.length ? v.segments.at(-1)!.to - (v.segments.find(s => s.kind !== "queued") ?? v.segments[0]).from : 0;
      return <tr key={v.key} aria-selected={v.key === chosen} class="link-row" onClick={() => choose(v.key)}>
        <td><button type="button" class="bare" aria-pressed={v.key === chosen} onClick={e => { e.stopPropagation(); choose(v.key); }} title={`${v.name}, visit ${v.visit}`}>{v.name}{v.visit > 1 && <span class="muted"> #{v.visit}</span>}</button></td>
        <td class="track-cell"><div class="track" role="img" aria-label={v.segments.map(s => `${s.title}, ${precise(s.to - s.from)}`).join("; ") || "not started"}>{v.segments.map((s, i) => {
          const left = scale.x(s.from) * 100, width = scale.x(s.to) * 100 - left;
          return <span key={i} class={`segment ${s.kind} tone-${s.tone}${s.open && s.kind !== "queued" ? " open" : ""}`} style={{ left: left + "%", width: width + "%" }} title={`${s.title}\n${clockTime(s.from)}, ${precise(s.to - s.from)}`}>{s.kind === "attempt" && width > 3 ? <>{s.icon && s.icon !== "check" && <Icon name={s.icon} />}{s.n !== undefined && width > 5 && s.n}</> : s.kind === "uncertain" && width > 3 ? <Icon name="question" /> : null}</span>;
        })}</div></td>
        <td class="num" title={`${(100 * took / total).toFixed(1)} % of the run`}>{precise(took)} <span class="muted hide-small">{Math.round(100 * took / total)} %</span></td>
      </tr>;
    })}</tbody>
  </table>
    {visits.length > most && <p class="keyline">The last {most} of {visits.length} visits.</p>}
  </div>;
}

/** Marks counts what went wrong in a visit. */
export function Marks({ s }: { s: RunStep }) {
  return <span class="marks">{plural(s.attempts, "attempt")}
    {s.failures > 0 && <span class="tone tone-danger"><Icon name="x" />{plural(s.failures, "failure")}</span>}
    {s.deaths > 0 && <span class="tone tone-danger"><Icon name="warning" />{plural(s.deaths, "crash", "crashes")}</span>}
    {s.lostHandOuts > 0 && <span class="tone tone-waiting"><Icon name="question" />{plural(s.lostHandOuts, "lost hand-out")}</span>}</span>;
}

export const Legend = () => <div class="keyline">
  <span><span class="segment tone-ok" />completed</span><span><span class="segment tone-danger" />failed or crashed</span><span><span class="segment tone-active" />in flight</span>
  <span><span class="segment wait tone-waiting" />waits</span><span><span class="segment uncertain tone-uncertain" />uncertain</span><span><span class="segment queued tone-neutral" />due</span></div>;
