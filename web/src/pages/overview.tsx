// The overview: what the workspace does and has, and how its nodes are.
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Node, Overview as OverviewDoc, Quota, Rate, Tally } from "../api.gen";
import { get, now, query, Refused } from "../core/api";
import { useFollow, useGet } from "../core/data";
import { absolute, clockTime, number } from "../core/format";
import { useKeys } from "../core/keyboard";
import { params, setParams, to } from "../core/router";
import { Button, Empty, Failure, Loading, Notice, Panel, State, Time, type Tone, useTitle } from "../ui/basic";
import { Chart } from "../ui/chart";
import { Act, curlEntry, Menu } from "../ui/dialog";
import { offer } from "../ui/palette";
import { Page } from "../ui/shell";
import { SimpleTable } from "../ui/table";
import { maintain, nodeState, Sweeps } from "./nodes";

const ranges: [string, string, number][] = [["15m", "15 min", 15], ["1h", "1 h", 60], ["6h", "6 h", 360], ["24h", "24 h", 1440], ["7d", "7 d", 10080]];

/** The window of the charts in ms: the last minutes, or a part that was selected. */
function windowOf(): { from: number; until: number; range: string; fixed: boolean } {
  const q = params.value, from = Number(q.get("from")), until = Number(q.get("until"));
  const range = ranges.find(r => r[0] === q.get("range")) ?? ranges[1];
  if (from > 0 && until > from) return { from: from * 1000, until: until * 1000, range: range[0], fixed: true };
  const end = Math.floor(now() / 60_000) * 60_000;
  return { from: end - (range[2] - 1) * 60_000, until: end, range: range[0], fixed: false };
}

/** useRates reads the rates of a time once, and then only the last minutes again, when a node has reported. */
function useRates(from: number, live: boolean) {
  const state = useMemo(() => ({ rows: signal<Map<string, Rate> | undefined>(undefined), error: signal<Refused | undefined>(undefined), minute: 0 }), []);
  const read = async (minutes: number, first: boolean, abort?: AbortSignal) => {
    try {
      const all = first ? new Map<string, Rate>() : new Map(state.rows.peek());
      for (let cursor: string | null = ""; cursor !== null;) {
        const page: { items: Rate[]; next: string | null } = await get("/rates" + query({ minutes, limit: 1000, cursor }), { signal: abort });
        for (const r of page.items) all.set(r.minute + " " + r.node, r);
        cursor = page.next;
      }
      if (abort?.aborted) return;
      state.rows.value = all;
      state.error.value = undefined;
    } catch (e) {
      if (!abort?.aborted && (e as Error).name !== "AbortError") state.error.value = e as Refused;
    }
  };
  const back = () => Math.min(10080, Math.max(1, Math.ceil((now() - from) / 60_000) + 1));
  const key = Math.round(from / 60_000);
  useEffect(() => { const a = new AbortController(); state.rows.value = undefined; void read(back(), true, a.signal); return () => a.abort(); }, [live ? params.value.get("range") ?? "" : key]);
  useFollow({ topics: live ? ["nodes"] : [] }, () => { if (state.rows.peek()) void read(3, false); });
  return { ...state, reload: () => void read(back(), true) };
}

/** Sums of all nodes by minute, and over steps of several minutes their mean. Times are in seconds. */
function sums(rows: Iterable<Rate>, from: number, until: number, step: number) {
  const first = Math.ceil(from / (60_000 * step)) * step, last = Math.floor(Math.min(until, now()) / 60_000), n = Math.max(0, Math.floor((last - first) / step) + 1);
  const times = Array.from({ length: n }, (_, i) => (first + i * step) * 60);
  const sum = { commands: zero(n), refusals: zero(n), requests: zero(n), steps: zero(n), runs: zero(n), items: zero(n), reactions: zero(n) };
  const worst: Record<string, (number | null)[]> = { latencyMs: Array(n).fill(null), lagMs: Array(n).fill(null) };
  for (const r of rows) {
    const i = Math.floor((Date.parse(r.minute!) / 60_000 - first) / step);
    if (i < 0 || i >= n) continue;
    for (const k of Object.keys(sum) as (keyof typeof sum)[]) sum[k][i] += r[k] / step;
    for (const k of Object.keys(worst)) { const v = (r as unknown as Record<string, number | null | undefined>)[k]; if (v !== null && v !== undefined) worst[k][i] = Math.max(worst[k][i] ?? 0, v); }
  }
  return { times, ...sum, latencyMs: worst.latencyMs, lagMs: worst.lagMs };
}
const zero = (n: number): number[] => Array(n).fill(0);
const stepOf = (minutes: number) => [1, 2, 5, 10, 30, 60].find(s => minutes / s <= 300) ?? 60;

export function Overview() {
  useTitle("Overview");
  const paused = params.value.get("paused") === "1", live = !paused;
  const w = windowOf();
  const read = useGet<OverviewDoc>("/overview", { topics: live ? ["overview"] : [], when: m => m.reset });
  const nodes = useGet<{ items: Node[] }>("/nodes?limit=1000", { topics: live ? ["nodes"] : [], when: m => m.reset });
  const rates = useRates(w.from, live && !w.fixed);
  useFollow({ topics: live ? ["overview", "nodes"] : [] }, m => {
    if (m.state?.overview) read.set(m.state.overview);
    if (m.state?.nodes && m.state.nodes.length < 100) nodes.set({ items: m.state.nodes });
  });
  const pause = () => { if (paused) { read.reload(); nodes.reload(); rates.reload(); } setParams({ paused: paused ? "" : "1" }); };
  const choose = (range: string) => setParams({ range, from: "", until: "" });
  const select = (from: number, until: number) => { if (until - from >= 60) setParams({ from: String(Math.floor(from / 60) * 60), until: String(Math.ceil(until / 60) * 60) }, false); };
  useKeys({ p: [paused ? "continue the live updates" : "pause the live updates", pause] });
  useEffect(() => offer([{ label: paused ? "Continue the live updates" : "Pause the live updates", icon: paused ? "play" : "pause", run: pause }, ...ranges.map(([id, label]) => ({ label: "Show the last " + label, icon: "clock" as const, run: () => choose(id) }))]), [paused]);
  return <Page title="Overview" actions={<>
    <div class="range" role="group" aria-label="Range of the charts">{ranges.map(([id, label]) => <button type="button" key={id} aria-pressed={!w.fixed && w.range === id} onClick={() => choose(id)}>{label}</button>)}</div>
    {w.fixed && <Button onClick={() => choose(w.range)}>Back to the last {ranges.find(r => r[0] === w.range)![1]}</Button>}
    <Button icon={paused ? "play" : "pause"} aria-pressed={paused} onClick={pause}>{paused ? "Continue" : "Pause"}</Button><Menu label="More" entries={[curlEntry("GET", "/overview"), { ...curlEntry("GET", "/rates?minutes=60"), label: "Copy the rates as curl" }]} /></>}>
    {paused && <Notice tone="waiting" icon="pause"><p>Live updates are paused. The page shows what it read at {read.at.value ? clockTime(read.at.value) : "its start"}.</p></Notice>}
    {w.fixed && <p class="muted">From {absolute(w.from, false)} until {absolute(w.until, false)}.</p>}
    <Figures read={read} />
    <Charts rates={rates} from={w.from} until={w.until} select={select} />
    <Nodes read={nodes} />
    <Quotas live={live} />
    <Contents of={read.value.value} />
  </Page>;
}

interface Figure { label: string; n: number | undefined; href: string; tone?: Tone }

function Figures({ read }: { read: ReturnType<typeof useGet<OverviewDoc>> }) {
  const o = read.value.value;
  if (!o) return read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />;
  const runs = (s: string) => o.liveRuns[s] ?? 0, all = (r: Record<string, number>, ...not: string[]) => Object.entries(r).reduce((n, [k, v]) => n + (not.includes(k) ? 0 : v), 0);
  const figures: Figure[] = [
    { label: "held operations", n: o.operations.held ?? 0, href: "/operations?state=held", tone: "active" }, { label: "due operations", n: o.operations.due ?? 0, href: "/operations?state=due", tone: "waiting" }, { label: "uncertain operations", n: o.operations.uncertain ?? 0, href: "/operations?state=uncertain", tone: "uncertain" },
    { label: "blocked streams", n: o.blockedStreams, href: "/reactions?only=blocked", tone: "danger" }, { label: "pending approvals", n: o.approvals, href: "/approvals?status=pending", tone: "waiting" },
    { label: "waiting runs", n: runs("WAITING"), href: "/runs?status=WAITING", tone: "waiting" }, { label: "live runs", n: all(o.liveRuns, "FAILED"), href: "/runs", tone: "active" }, { label: "failed runs", n: runs("FAILED"), href: "/runs?status=FAILED", tone: "danger" },
    { label: "live batches", n: all(o.liveBatches), href: "/batches", tone: "active" }, { label: "paused batches", n: o.liveBatches.PAUSED ?? 0, href: "/batches?status=PAUSED", tone: "waiting" }];
  return <>{read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    <section class="figures five" aria-label="What has not ended">{figures.map(f => <a key={f.label} href={f.href} class={f.n ? "tone-" + f.tone : ""}><strong>{number(f.n)}</strong><span>{f.label}</span></a>)}</section></>;
}

function Charts({ rates, from, until, select }: { rates: ReturnType<typeof useRates>; from: number; until: number; select: (from: number, until: number) => void }) {
  const rows = rates.rows.value, step = stepOf((until - from) / 60_000);
  const s = useMemo(() => rows && sums(rows.values(), from, until, step), [rows, from, until, step]);
  if (!s) return rates.error.value ? <Failure error={rates.error.value} retry={rates.reload} /> : <Loading />;
  const unit = "/min";
  return <>{rates.error.value && <Notice tone="danger"><Failure error={rates.error.value} retry={rates.reload} /></Notice>}
    <section class="charts" aria-label="Charts">
      <div class="panel"><Chart title="Rate" times={s.times} onRange={select} series={[{ label: "requests", tone: "active", values: s.requests, unit }, { label: "commands", tone: "ok", values: s.commands, unit }]} /></div>
      <div class="panel"><Chart title="Refused commands" times={s.times} onRange={select} series={[{ label: "refused", tone: "danger", values: s.refusals, unit }]} /></div>
      <div class="panel"><Chart title="Latency" times={s.times} onRange={select} series={[{ label: "95 % of requests within", tone: "uncertain", values: s.latencyMs, unit: "ms" }]} /></div>
      <div class="panel"><Chart title="Lag" times={s.times} onRange={select} series={[{ label: "age of the oldest due work", tone: "waiting", values: s.lagMs.map(v => (v === null ? null : v / 1000)), unit: "s" }]} /></div>
      <div class="panel"><Chart title="Work that ended" times={s.times} onRange={select} series={[{ label: "steps", tone: "active", values: s.steps, unit }, { label: "deliveries", tone: "ok", values: s.reactions, unit }, { label: "items", tone: "waiting", values: s.items, unit }, { label: "runs", tone: "uncertain", values: s.runs, unit }]} /></div>
    </section>
    <p class="muted">All nodes of the database, per minute{step > 1 ? `, mean of ${step} minutes` : ""}. Drag over a chart to select a part of it.</p></>;
}

function Nodes({ read }: { read: ReturnType<typeof useGet<{ items: Node[] }>> }) {
  const all = read.value.value?.items;
  return <Panel title="Nodes and janitors" flush actions={<><Act class="small" method="POST" path="/maintenance" onClick={maintain}>Run maintenance</Act><a class="link" href="/nodes">All</a></>}>
    {!all ? (read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />)
      : <SimpleTable of={all} id={n => n.name} href={n => to.node(n.name)} empty={<Empty title="No nodes" command="holdfast serve --db sqlite:holdfast.db">A server or program that runs an engine is listed here while it runs.</Empty>} columns={[
        { title: "Node", cell: n => n.name }, { title: "State", cell: n => <State of={nodeState(n)} /> }, { title: "Janitor", cell: n => <Sweeps of={n} /> }, { title: "Last seen", cell: n => <Time at={n.seenAt} /> }, { title: "Connections", cell: n => `${n.pool.busy} of ${n.pool.size}`, num: true }, { title: "Queued", cell: n => number(n.queued), num: true }, { title: "Waiting", cell: n => number(n.waiting), num: true }, { title: "Version", cell: n => n.version }]} />}
  </Panel>;
}

/** Bytes as a person reads them. */
const bytes = (n: number) => { let unit = 0; while (n >= 10_240 && unit < 4) { n /= 1024; unit++; } return `${number(Math.round(n))} ${["bytes", "KiB", "MiB", "GiB", "TiB"][unit]}`; };

const limits: Record<string, string> = { requests: "requests per second", connections: "event streams and waiting requests", work: "open operations, runs and items", storage: "stored documents", definitions: "definitions, handlers, keys and the like" };

/** What the workspace may use, and uses: the most used quota first. */
function Quotas({ live }: { live: boolean }) {
  const read = useGet<{ items: Quota[] }>("/quotas", { topics: live ? ["overview"] : [] });
  const all = read.value.value?.items.filter(q => q.limit !== null || q.used), part = (q: Quota) => (q.used ?? 0) / (q.limit ?? Infinity);
  const amount = (q: Quota, n: number | null, none: string) => (n === null ? <span class="muted">{none}</span> : q.name === "storage" ? bytes(n) : number(n));
  if (!all) return read.error.value ? <Panel title="Quotas"><Failure error={read.error.value} retry={read.reload} /></Panel> : null;
  return <Panel title="Quotas" flush actions={<Menu label="More" entries={[curlEntry("GET", "/quotas")]} />}><SimpleTable of={all.sort((a, b) => part(b) - part(a))} id={q => q.name} empty={<Empty title="No quotas">The server limits nothing in this workspace.</Empty>} columns={[
    { title: "Quota", cell: q => <span title={limits[q.name]}>{q.name}</span> }, { title: "State", cell: q => (part(q) >= 1 ? <State of="reached" tone="danger" icon="stop" /> : part(q) >= 0.8 ? <State of="nearly reached" tone="waiting" icon="warning" /> : <State of="room left" tone="ok" icon="check" />) },
    { title: "Used", cell: q => amount(q, q.used, "–"), num: true }, { title: "Limit", cell: q => amount(q, q.limit, "none"), num: true }, { title: "Counts", cell: q => (q.perNode ? "this node" : "all nodes") }, { title: "Refused by this node", cell: q => number(q.refused), num: true }]} /></Panel>;
}

/** What the workspace has, by kind. */
function Contents({ of: o }: { of: OverviewDoc | undefined }) {
  if (!o) return null;
  const scopes: [string, Tally, (k: string) => string][] = [
    ["Entities", o.entities, k => to.lifecycle(k)], ["Ended runs", o.endedRuns, k => "/runs?status=" + k], ["Ended batches", o.endedBatches, k => "/batches?status=" + k], ["Streams", o.streams, () => "/streams"], ["Scopes", o.scopes, k => "/scopes/" + encodeURIComponent(k)]];
  const some = scopes.filter(([, t]) => Object.keys(t.counts).length);
  const live: [string, Record<string, number>, string][] = [["Live runs", o.liveRuns, "/runs?status="], ["Live batches", o.liveBatches, "/batches?status="]];
  if (!some.length && !live.some(([, r]) => Object.keys(r).length)) return null;
  return <section class="grid" aria-label="What the workspace has">
    {live.filter(([, r]) => Object.keys(r).length).map(([title, r, href]) => <Panel key={title} title={title} flush><SimpleTable of={Object.entries(r).sort((a, b) => b[1] - a[1])} id={([k]) => k} href={([k]) => href + k} columns={[{ title: "Status", cell: ([k]) => <State of={k} /> }, { title: "Count", cell: ([, n]) => number(n), num: true }]} /></Panel>)}
    {some.map(([title, t, href]) => <Panel key={title} title={<>{title}{t.capped && <span class="muted" title="Only the first 5,001 are counted."> (more than 5,000)</span>}</>} flush><SimpleTable of={Object.entries(t.counts).sort((a, b) => b[1] - a[1])} id={([k]) => k} href={([k]) => href(k)} columns={[{ title: "Kind", cell: ([k]) => (/^[A-Z_]+$/.test(k) ? <State of={k} /> : k) }, { title: "Count", cell: ([, n]) => number(n) + (t.capped ? "+" : ""), num: true }]} /></Panel>)}
  </section>;
}

