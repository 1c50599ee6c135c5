// The inbox: what needs a person, by harm and age, with the one action in place.
import { computed, signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { InboxAction, InboxCount, InboxItem, LiveInbox } from "../api.gen";
import { get, mayCall } from "../core/api";
import { useFollow, useGet } from "../core/data";
import { plural, sentence, words } from "../core/format";
import { useKeys } from "../core/keyboard";
import { params, subjectLink, to } from "../core/router";
import { Empty, Failure, Icon, type IconName, Loading, Notice, Time, type Tone, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, type Entry, Menu, quick } from "../ui/dialog";
import { Choice } from "../ui/filter";
import { Page } from "../ui/shell";
import { startBulk } from "./operate-part";
import { bulk as resolveAll } from "./operations-actions";
import { bulk } from "./reactions-actions";

const counts = signal<InboxCount[]>([]);
/** The number of entries, which the navigation shows on every page. */
export const inboxTotal = computed(() => counts.value.reduce((n, c) => n + c.count, 0));

/** What a kind means, and how much harm it does: money that may have moved comes first. */
const kinds: Record<string, { harm: number; tone: Tone; icon: IconName }> = {
  uncertainOperation: { harm: 0, tone: "uncertain", icon: "question" }, uncertainStep: { harm: 0, tone: "uncertain", icon: "question" },
  blockedStream: { harm: 1, tone: "danger", icon: "stop" }, refusedWebhook: { harm: 1, tone: "danger", icon: "hook" }, failedRun: { harm: 1, tone: "danger", icon: "x" }, failingTeardown: { harm: 1, tone: "danger", icon: "undo" },
  stalledJanitor: { harm: 2, tone: "danger", icon: "server" }, unservedWork: { harm: 2, tone: "danger", icon: "plug" }, unservedVersion: { harm: 2, tone: "danger", icon: "plug" }, expiredLease: { harm: 2, tone: "danger", icon: "lock" },
  pausedBatch: { harm: 3, tone: "waiting", icon: "wallet" }, pendingApproval: { harm: 3, tone: "waiting", icon: "person" }, overdueSignal: { harm: 3, tone: "waiting", icon: "clock" },
  closingStream: { harm: 4, tone: "waiting", icon: "stream" }, heldUpRetention: { harm: 4, tone: "waiting", icon: "box" }, oldSnapshot: { harm: 4, tone: "waiting", icon: "clock" },
};
const look = (kind: string) => kinds[kind] ?? { harm: 5, tone: "neutral" as Tone, icon: "dot" as IconName };

/** subjectPage returns the page of an entry's subject. */
export function subjectPage(i: InboxItem): string | undefined {
  const s = i.subject, cut = s.indexOf("/");
  switch (i.kind) {
    case "uncertainOperation": case "expiredLease": return i.id ? to.operation(i.id) : undefined;
    case "uncertainStep": case "failedRun": case "overdueSignal": return to.run(s.split("/")[0]);
    case "pendingApproval": return to.approval(i.id);
    case "blockedStream": return to.reaction(cut > 0 ? s.slice(0, cut) : s);
    case "pausedBatch": case "failingTeardown": return to.batch(s);
    case "closingStream": return subjectLink(s);
    case "stalledJanitor": case "oldSnapshot": return "/nodes";
    case "unservedWork": return "/handlers";
    case "unservedVersion": return "/runs?status=WAITING";
    case "refusedWebhook": return "/webhooks";
  }
}

/** useInboxCount keeps the number in the navigation up to date on every page. */
export function useInboxCount(): void {
  const told = useRef(false); // by the stream, which is newer than the response
  useLayoutEffect(() => void get<{ counts: InboxCount[] }>("/inbox/counts").then(r => { if (!told.current) counts.value = r.counts; }, () => undefined), []);
  useFollow({ topics: ["inbox"] }, m => { if (m.state?.inbox) { told.current = true; counts.value = m.state.inbox.counts; } });
}

/** inboxPath is what the inbox reads: the entries of a kind, or of all. */
export const inboxPath = (kind: string) => "/inbox?limit=100" + (kind ? "&kind=" + kind : "");

export function Inbox() {
  useTitle("Inbox");
  useInboxKeys();
  const kind = params.value.get("kind") ?? "";
  const read = useGet<{ items: InboxItem[]; next: string | null }>(inboxPath(kind), { topics: ["inbox"], when: m => m.reset || (!!m.state?.inbox && !!kind) });
  useFollow({ topics: ["inbox"] }, m => {
    const inbox: LiveInbox | undefined = m.state?.inbox;
    if (!inbox || kind) return;
    read.set({ items: inbox.items, next: null });
    if (inbox.items.length === 0) clearSince.value ??= Date.now();
  });
  const items = read.value.value?.items;
  if (items?.length) clearSince.value = null;
  const sorted = items && [...items].sort((a, b) => look(a.kind).harm - look(b.kind).harm || Date.parse(a.since ?? "") - Date.parse(b.since ?? ""));
  const total = kind ? counts.value.find(c => c.kind === kind)?.count ?? 0 : inboxTotal.value;
  return <Page title="Inbox" actions={<Choice name="kind" label="Kind" options={counts.value.filter(c => c.count).map(c => ({ value: c.kind, label: `${words(c.kind)} (${c.count}${c.capped ? "+" : ""})` }))} />}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    {!sorted ? (read.error.value ? null : <Loading />) : sorted.length === 0
      ? <AllClear kind={kind} />
      : <ul class="stack tight" aria-label="What needs a person">{sorted.map(i => <Entry key={i.kind + i.id} i={i} same={sorted.filter(x => x.kind === i.kind)} />)}</ul>}
    {sorted && total > sorted.length && <p class="muted">{plural(total - sorted.length, "more entry", "more entries")}: choose a kind to see them.</p>}
  </Page>;
}

const clearSince = signal<number | null>(null);

function AllClear({ kind }: { kind: string }) {
  return <Empty title={kind ? `No ${words(kind)}` : "All clear"}>{clearSince.value ? <>Nothing has needed a person since <Time at={clearSince.value} />.</> : "Nothing needs a person."} What is stuck, uncertain or waiting for a decision appears here, with the action that repairs it.</Empty>;
}

/** All entries of a kind at once, if there is such an action. It says first how many it would change. */
function bulkFor(kind: string, all: InboxItem[]): Entry | undefined {
  switch (kind) {
    case "failedRun": return { label: `Retry all ${all.length} failed runs`, icon: "list", run: () => startBulk({ title: "Retry failed runs", label: "Retry", make: () => ({ action: "run.retry", ids: all.map(i => i.id) }) }) };
    case "uncertainOperation": return { label: `Resolve all ${all.length} uncertain operations`, icon: "list", run: () => resolveAll("resolve", all.map(i => i.id)) };
    case "blockedStream": return { label: "Unblock all blocked streams", icon: "list", run: () => bulk("reaction.unblock", { filter: {} }) };
  }
}

function Entry({ i, same }: { i: InboxItem; same: InboxItem[] }) {
  const { tone, icon } = look(i.kind), page = subjectPage(i), all = same.length > 1 && mayCall("POST", "/bulk") ? bulkFor(i.kind, same) : undefined;
  const others: Entry[] = [
    ...i.others.filter(o => o.method && mayCall(o.method, o.route!)).map(o => ({ label: o.label, run: () => confirm(i, o) })),
    ...(all ? [all] : []),
    ...(i.action.method ? [curlEntry(i.action.method, i.action.route!, i.action.body)] : []),
  ];
  return <li class={"panel tone-" + tone} data-kind={i.kind} data-id={i.id}><div class="body row wrap">
    <span class="tone" title={words(i.kind)}><Icon name={icon} /></span>
    <div class="grow">
      <div class="row wrap"><strong>{sentence(words(i.kind))}</strong>{page ? <a class="mono clip" href={page}>{i.subject}</a> : <span class="mono clip">{i.subject}</span>}</div>
      <p>{i.reason}</p>
      <p class="muted row wrap"><span>since <Time at={i.since} /></span>{i.owner && <span>· {i.owner}</span>}{i.deadline && <span>· deadline <Until at={i.deadline} over="passed" /></span>}<span>· <a class="link" href={to.docs("runbooks/" + i.kind)}>Runbook</a></span></p>
    </div>
    {i.action.method ? <Act method={i.action.method} path={i.action.route!} class="primary" onClick={() => confirm(i, i.action, true)}>{i.action.label}</Act> : <span class="muted">{i.action.label}</span>}
    <Menu label={"More actions for " + i.subject} entries={others} />
  </div></li>;
}

const trivial = /\/(unblock|retry|maintenance)$/;

/** confirm sends the action of an entry. One that decides something for good is confirmed; one that only tries again is sent at once. */
export function confirm(i: InboxItem, a: InboxAction, main = false): void {
  const path = a.route!.replace(/^\/api\/v1/, "");
  if (main && trivial.test(path)) { void quick(a.method!, path, a.body ?? {}, a.label + ": done."); return; }
  ask({ title: a.label, body: <><p>{i.reason}</p><p class="muted">{words(i.kind)} · {i.subject}</p></>, label: a.label, danger: !main, method: a.method!, path, send: () => a.body ?? {} });
}

/** useInboxKeys repairs the first entry without a mouse. */
function useInboxKeys(): void {
  const move = (step: number) => {
    const all = [...document.querySelectorAll<HTMLElement>("li[data-kind] button.primary, li[data-kind] [aria-haspopup]")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    all[Math.max(0, Math.min(all.length - 1, at + step))]?.focus();
  };
  useKeys({ j: ["next action", () => move(1)], k: ["previous action", () => move(-1)] });
}
