// Scopes: versioned state, its versions and what changed between them.
import { useEffect } from "preact/hooks";
import type { Event, ListScopeKind, Scope, ScopeInfo } from "../api.gen";
import { mayCall, p, query } from "../core/api";
import { useGet, usePages } from "../core/data";
import { words } from "../core/format";
import { useKeys } from "../core/keyboard";
import { about, topic } from "../core/live";
import { go, params, segments, setParams, to } from "../core/router";
import { Button, Empty, Failure, Facts, Id, Json, Loading, Notice, Panel, State, Tabs, Time, Until, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { Search } from "../ui/filter";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Difference } from "../ui/diff";
import { brief, Missing, Shown, useOwnParams } from "./work-part";

export function Scopes() {
  useTitle("Scopes");
  const kinds = useGet<ListScopeKind>("/scopes?limit=1000", { topics: ["scopes"], when: m => m.reset || m.changes.some(c => c.kind === "scope" && c.version === 0) });
  const all = kinds.value.value?.items.map(k => k.kind), kind = segments.value[1] ?? all?.[0], id = segments.value[2];
  const path = kind ? p`/scopes/${kind}` + query({ prefix: params.value.get("prefix") }) : null;
  const rows = usePages<ScopeInfo>(path, { topics: ["scopes"], when: m => m.reset || [...m.changes, ...m.folded].some(c => c.kind === "scope" && c.subject.startsWith(kind + "/")) });
  useEffect(() => offer(mayCall("PUT", "/scopes/x/y") ? [{ label: "Create a scope", run: () => create(kind) }] : []), [kind]);
  const none = <Empty title={params.value.get("prefix") ? "No id begins with this text" : kind ? `No scopes of the kind ${kind}` : "No scopes"} command={`holdfast scope patch ${kind ?? "cart"} ada '{"total": 0}'`}>A scope is a versioned JSON document under a kind and an id. The first change creates it.</Empty>;
  return <Split bar={<><h1>Scopes</h1>{kind && <Shown rows={rows} one="scope" />}
    {all && all.length > 0 && <nav class="kinds" aria-label="Kinds of scopes">{all.map(k => <a key={k} href={"/scopes/" + encodeURIComponent(k)} aria-current={k === kind ? "page" : undefined}>{k}</a>)}</nav>}
    {kind && <Search name="prefix" label="Id begins with" />}<span class="grow" /><Act method="PUT" path="/scopes/x/y" icon="plus" onClick={() => create(kind)}>Create a scope</Act><Menu label="More" entries={[curlEntry("GET", path ?? "/scopes")]} /></>}
    list={kinds.error.value && !all ? <Failure error={kinds.error.value} retry={kinds.reload} /> : !kind ? (all ? none : <Loading />) : <Table label={"Scopes of the kind " + kind} rows={rows} id={s => s.id} href={s => to.scope(s.kind, s.id)} current={id} empty={none}
      columns={[{ title: "Scope", cell: s => <Id id={s.id} most={30} /> }, { title: "Version", num: true, cell: s => s.version }, { title: "Changed", cell: s => <Time at={s.updatedAt} /> }, { title: "Expires", cell: s => s.expiresAt ? <Until at={s.expiresAt} over="expired" /> : <span class="muted">never</span>, wide: true }, { title: "Created", cell: s => <Time at={s.createdAt} />, wide: true }]} />}
    beside={kind && id !== undefined ? <ScopeDetail key={kind + "/" + id} kind={kind} id={id} info={rows.value.value?.find(s => s.id === id)} /> : undefined} />;
}

const create = (kind?: string) => ask({ title: "Create a scope", label: "Create", method: "PUT", path: v => p`/scopes/${v.kind ?? "KIND"}/${v.id ?? "ID"}`, headers: () => ({ "If-None-Match": "*" }),
  fields: [{ name: "kind", label: "Kind", required: true, value: kind }, { name: "id", label: "Id", required: true }, { name: "state", label: "State (a JSON object)", kind: "json", required: true, value: "{}" }], send: v => v.state, said: "Created.", done: (_r, v) => go(to.scope(v.kind, v.id)) });

function ScopeDetail({ kind, id, info }: { kind: string; id: string; info?: ScopeInfo }) {
  useOwnParams("scopes", ["at", "from"]);
  const base = p`/scopes/${kind}/${id}`, subject = kind + "/" + id, stream = "$scope/" + subject, follow = { topics: [topic("scope", subject)], when: about("scope", subject) };
  const read = useGet<Scope>(base, follow), history = usePages<Event>(p`/streams/${stream}/events` + "?backward=true", follow);
  const s = read.value.value, gone = read.error.value?.status === 404, events = history.value.value ?? [], last = s && !gone ? s.version : events[0]?.version;
  const q = params.value, at = q.get("at") === null ? undefined : Number(q.get("at")), shown = at ?? last;
  const against = q.get("from") === null ? undefined : Number(q.get("from")), from = against ?? (shown === undefined ? undefined : shown - 1);
  const old = useGet<Scope>(at !== undefined && at !== s?.version ? `${base}?at=${at}` : null), before = useGet<Scope>(from !== undefined && from >= 0 && shown !== undefined ? `${base}?at=${from}` : null);
  useTitle(`${kind}/${id}`);
  const first = events.at(-1)?.version ?? 0, value = at !== undefined && at !== s?.version ? old.value.value : s, failed = at !== undefined && at !== s?.version ? old.error.value : undefined;
  const tab = q.get("show") ?? "state", event = events.find(e => e.version === shown);
  const move = (v: number) => { if (last !== undefined) setParams({ at: v >= last ? "" : String(Math.max(first, v)), from: "" }); };
  const actions = s && !gone ? { patch: () => patch(s), replace: () => replace(s), remove: () => remove(s) } : undefined;
  useKeys({ h: ["older version", () => shown !== undefined && move(shown - 1)], l: ["newer version", () => shown !== undefined && move(shown + 1)], ...(actions && mayCall("PATCH", base) ? { p: ["patch the scope", actions.patch] as [string, () => void] } : {}) });
  if (!s && !(gone && history.value.value)) return <Detail title={id} close={"/scopes/" + encodeURIComponent(kind)}>{read.error.value && !gone ? <Failure error={read.error.value} retry={read.reload} /> : history.error.value ? <Failure error={history.error.value} retry={history.reload} /> : <Loading />}</Detail>;
  if (gone && !events.length) return <Detail title={id} close={"/scopes/" + encodeURIComponent(kind)}><Failure error={read.error.value!} retry={read.reload} /></Detail>;
  return <Detail title={<Id id={id} most={36} />} state={gone ? <State of="deleted" tone="neutral" icon="x" /> : <span class="shown">version {s!.version}</span>} close={"/scopes/" + encodeURIComponent(kind)} actions={actions && <>
    <Act method="PATCH" path={base} class="primary" onClick={actions.patch}>Patch</Act><Act method="PUT" path={base} onClick={actions.replace}>Replace</Act><Act method="DELETE" path={base} class="danger" onClick={actions.remove}>Delete</Act><Menu label="More" entries={[curlEntry("GET", base + (at === undefined ? "" : "?at=" + at))]} /></>}>
    {read.error.value && !gone && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    {gone && <Notice tone="neutral" icon="x"><p>This scope was {events[0].name === "expired" ? "removed when it expired" : "deleted"} <Time at={events[0].at} />. Its earlier versions are still in its history.</p></Notice>}
    <Facts of={[["Kind", <a class="link" href={"/scopes/" + encodeURIComponent(kind)}>{kind}</a>], ["Created", info ? <Time at={info.createdAt} /> : undefined], ["Changed", info ? <Time at={info.updatedAt} /> : undefined], ["Expires", info ? (info.expiresAt ? <Until at={info.expiresAt} over="expired" /> : "never") : undefined]]} />
    <Panel title="Versions" actions={<><Button class="small icon-only" icon="left" aria-label="Older version" disabled={shown === undefined || shown <= first} onClick={() => move(shown! - 1)} /><Button class="small icon-only" icon="right" aria-label="Newer version" disabled={shown === undefined || shown >= last!} onClick={() => move(shown! + 1)} />{at !== undefined && at !== last && <Button class="small" onClick={() => move(last!)}>Latest</Button>}</>}>
      <div class="stack tight">
        <input class="slider" type="range" aria-label="Version" min={first} max={last ?? 0} value={shown ?? 0} disabled={first === last} onInput={e => move(Number(e.currentTarget.value))} aria-valuetext={`version ${shown}`} />
        <p class="row wrap"><strong>Version {shown}</strong>{event && <><span>{words(event.name)}</span><span class="mono muted clip">{brief(event.data)}</span><span class="muted">{event.actor && <>by {event.actor} · </>}<Time at={event.at} /></span></>}{at !== undefined && at !== last && <State of="earlier version" tone="waiting" icon="clock" />}</p>
      </div>
    </Panel>
    <Panel title={tab === "changes" ? <>Changes from version {from} to {shown}</> : <>State at version {shown}</>} actions={tab === "changes" && shown !== undefined && <label class="row">Compare with <select value={against === undefined ? "" : String(against)} onChange={e => setParams({ from: e.currentTarget.value })}><option value="">the version before</option>{events.filter(e => e.version !== shown).slice(0, 200).map(e => <option key={e.version} value={String(e.version)}>version {e.version}</option>)}</select></label>}>
      <div class="stack tight">
        <Tabs all={[{ id: "state", label: "State" }, { id: "changes", label: "Changes" }]} value={tab} onChange={t => setParams({ show: t === "state" ? "" : t })} />
        {failed ? (failed.status === 404 ? <Missing what={event?.name === "deleted" || event?.name === "expired" ? "The scope did not exist at this version." : "This version cannot be read: its history is not retained."} /> : <Failure error={failed} retry={old.reload} />)
          : !value && !gone ? <Loading /> : tab === "changes"
            ? before.error.value && before.error.value.status !== 404 ? <Failure error={before.error.value} retry={before.reload} /> : from !== undefined && from >= 0 && !before.value.value && !before.error.value ? <Loading /> : <Difference before={before.value.value?.state} after={gone && at === undefined ? null : value?.state} label={`Changes from version ${from} to ${shown}`} />
            : gone && at === undefined ? <Missing what="The scope does not exist any more." /> : <Json value={value?.state} label={`State at version ${shown}`} />}
      </div>
    </Panel>
    <Panel title="History" flush actions={<Shown rows={history} one="change" />}>
      <Table label="History" rows={history} id={e => String(e.version)} keys={false} height={events.length > 8 ? "290px" : "auto"} empty={<Empty title="No history">The history of this scope is not retained any more.</Empty>} columns={[
        { title: "Version", num: true, cell: e => e.version }, { title: "Change", cell: e => <button type="button" class="bare link" aria-pressed={e.version === shown} onClick={() => { setParams({ at: e.version === last ? "" : String(e.version), from: "", show: "changes" }); }}>{words(e.name)}</button> },
        { title: "When", cell: e => <Time at={e.at} /> }, { title: "By", cell: e => e.actor || "–" }, { title: "Data", class: "mono rest", cell: e => <span class="muted" title={JSON.stringify(e.data)}>{brief(e.data)}</span> }]} />
    </Panel>
  </Detail>;
}

const tag = (s: Scope) => ({ "If-Match": `"${s.version}"` });
const only = (s: Scope) => <p class="muted">Sent with <code>If-Match: "{s.version}"</code>: if the scope has changed since you read it, nothing is written.</p>;

const patch = (s: Scope) => ask({ title: `Patch ${s.kind}/${s.id}`, label: "Patch", method: "PATCH", path: p`/scopes/${s.kind}/${s.id}`, headers: () => tag(s), body: only(s),
  fields: [{ name: "patch", label: "Merge patch (JSON)", kind: "json", required: true, value: "{\n  \n}", help: "Members replace those of the state, objects are merged, and null removes a member." }], send: v => v.patch, said: r => (r.changed ? `Changed: version ${r.version}.` : "Nothing changed.") });

const replace = (s: Scope) => ask({ title: `Replace ${s.kind}/${s.id}`, label: "Replace", danger: true, touches: 1, method: "PUT", path: p`/scopes/${s.kind}/${s.id}`, headers: () => tag(s), body: only(s),
  fields: [{ name: "state", label: "State (a JSON object)", kind: "json", required: true, value: JSON.stringify(s.state, null, 2) }], send: v => v.state, said: r => (r.changed ? `Replaced: version ${r.version}.` : "Nothing changed.") });

const remove = (s: Scope) => ask({ title: `Delete ${s.kind}/${s.id}`, label: "Delete", danger: true, touches: 1, method: "DELETE", path: p`/scopes/${s.kind}/${s.id}`, headers: () => tag(s),
  body: <><p>The state of scope <code>{s.kind}/{s.id}</code> at version {s.version} is deleted. Its history remains.</p>{only(s)}</>, said: "Deleted." });
