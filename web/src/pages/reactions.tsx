// Reactions and after-effects: how far they are, what blocks them, and how they are repaired.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Position, Reaction } from "../api.gen";
import { get, may, query, Refused } from "../core/api";
import { useFollow, usePages } from "../core/data";
import { number, plural } from "../core/format";
import { params, segments, to } from "../core/router";
import { Empty, Failure, Notice, State, useTitle } from "../ui/basic";
import { Act } from "../ui/dialog";
import { Choice, Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Split, Table } from "../ui/table";
import { bulk, define } from "./reactions-actions";
import { ReactionDetail } from "./reactions-detail";

/** What the positions of a reaction add up to. */
export interface Progress { streams: number; watermark: number; head: number; lag: number; blocked: number }

/** behind returns how many events are left to a position, as far as they concern the reaction. */
export const behind = (x: Position) => Math.max(0, x.due - x.watermark);

const pages = 5, perPage = 1000;

/** useProgress adds up the positions of all reactions. It reads at most 5,000, and reads them again after a change, but not more often than every 5 seconds. */
function useProgress() {
  const all = useSignal<Map<string, Progress> | undefined>(undefined), error = useSignal<Refused | undefined>(undefined), until = useSignal<string | null>(null), again = useSignal(0);
  useEffect(() => {
    const abort = new AbortController();
    void (async () => {
      const sums = new Map<string, Progress>();
      let cursor: string | null = "", last = "";
      for (let n = 0; n < pages && cursor !== null; n++) {
        const page: { items: Position[]; next: string | null } = await get("/reactions/*/streams" + query({ limit: perPage, cursor }), { signal: abort.signal });
        for (const x of page.items) {
          const s = sums.get(x.reaction) ?? { streams: 0, watermark: 0, head: 0, lag: 0, blocked: 0 };
          s.streams++; s.watermark += x.watermark + 1; s.head += x.head + 1; s.lag += behind(x); s.blocked += x.blocked ? 1 : 0;
          sums.set(last = x.reaction, s);
        }
        cursor = page.next;
      }
      all.value = sums; until.value = cursor === null ? null : last; error.value = undefined;
    })().catch(e => { if (!abort.signal.aborted) error.value = e instanceof Refused ? e : new Refused("INTERNAL", String(e), 0, ""); });
    return () => abort.abort();
  }, [again.value]);
  const timer = useSignal(0);
  useEffect(() => () => clearTimeout(timer.peek()), []);
  const soon = (ms: number) => { if (!timer.peek()) timer.value = window.setTimeout(() => { timer.value = 0; again.value++; }, ms); };
  useFollow({ topics: ["reactions"], when: m => m.reset || m.changes.some(c => c.kind === "reaction") || m.folded.some(c => c.kind === "reaction") }, () => { clearTimeout(timer.peek()); timer.value = 0; soon(300); });
  useFollow({ topics: ["streams", "operations"], when: m => m.reset || m.changes.length > 0 || m.folded.length > 0 }, () => soon(5000));
  /** The sums of a reaction; undefined if they are not known. */
  const of = (name: string): Progress | undefined => (until.value !== null && name >= until.value ? undefined : all.value?.get(name) ?? (all.value && { streams: 0, watermark: 0, head: 0, lag: 0, blocked: 0 }));
  return { of, error, reload: () => again.value++, known: all.value !== undefined, total: all.value ? [...all.value.values()].reduce((n, x) => n + x.blocked, 0) : 0 };
}

export function Reactions() {
  const name = segments.value[1], q = params.value;
  useTitle(name ?? "Reactions");
  const rows = usePages<Reaction>("/reactions", { topics: ["reactions"] }), progress = useProgress();
  const kind = q.get("kind"), text = (q.get("name") ?? "").toLowerCase(), only = q.get("only");
  const shown = { ...rows, value: { get value() { return rows.value.value?.filter(r => fits(r.name)); } } } as typeof rows;
  const fits = (n: string) => n.toLowerCase().includes(text) && (!kind || (kind === "after") === n.startsWith("$after:")) && (!only || (only === "blocked" ? progress.of(n)?.blocked : progress.of(n)?.lag));
  useEffect(() => offer([
    ...(may("PUT /reactions/{name}") ? [{ label: "Create a reaction", icon: "plus" as const, run: () => define() }] : []),
    ...(may("POST /bulk") ? [{ label: "Unblock all blocked streams of all reactions", icon: "bolt" as const, run: () => void bulk("reaction.unblock", { filter: {} }) }] : []),
  ]), []);
  const sum = (f: (x: Progress) => number) => (r: Reaction) => { const x = progress.of(r.name); return x ? number(f(x)) : "–"; };
  return <Split bar={<><h1>Reactions</h1><Search name="name" label="Name" /><Choice name="kind" label="Kind" options={[{ value: "reaction", label: "reactions" }, { value: "after", label: "after-effects" }]} /><Choice name="only" label="State" options={[{ value: "blocked", label: "blocked" }, { value: "behind", label: "behind" }]} />
    <span class="grow" />{progress.total > 0 && <Act method="POST" path="/bulk" icon="bolt" onClick={() => void bulk("reaction.unblock", { filter: {} })}>Unblock all reactions</Act>}<Act method="PUT" path="/reactions/x" icon="plus" onClick={() => define()}>Create</Act></>}
    list={<>{progress.error.value && <Notice tone="danger"><Failure error={progress.error.value} retry={progress.reload} /></Notice>}
      <Table label="Reactions" rows={shown} id={r => r.name} href={r => to.reaction(r.name)} current={name}
        empty={text || kind || only ? <Empty title="No reaction matches">Change the filters.</Empty> : <Empty title="No reactions" command={`holdfast reactions put mail --events paid --streams '^orders'`}>Reactions to events, and the after-effects of lifecycles, appear here.</Empty>}
        columns={[
          { title: "Reaction", cell: r => r.name },
          { title: "State", cell: r => { const x = progress.of(r.name); return !x ? <span class="muted">–</span> : x.blocked ? <State of="blocked" title={plural(x.blocked, "blocked stream")} /> : x.lag ? <State of="running" title="It has events to handle." /> : <State of="done" title="It has handled all events." />; } },
          { title: "Blocked", num: true, cell: sum(x => x.blocked) }, { title: "Behind", num: true, cell: sum(x => x.lag) },
          { title: "Watermark", num: true, wide: true, cell: sum(x => x.watermark) }, { title: "Head", num: true, wide: true, cell: sum(x => x.head) }, { title: "Streams", num: true, wide: true, cell: sum(x => x.streams) },
          { title: "Served by", wide: true, cell: r => servedBy(r) }]} /></>}
    beside={name ? <ReactionDetail name={name} key={name} /> : undefined} />;
}

/** servedBy says who handles the events of a reaction. */
export const servedBy = (r: Reaction) => r.handler ? <a class="link" href={to.handler(r.handler)}>{r.handler}</a> : r.program || r.name.startsWith("$") ? "a Go program" : "claims over HTTP";
