// Stored requests: what callers who sent an idempotency key were told.
import { useState } from "preact/hooks";
import type { StoredRequest, StoredRequests } from "../api.gen";
import { may, p, query } from "../core/api";
import { useGet } from "../core/data";
import { plural } from "../core/format";
import { go, params, segments, to } from "../core/router";
import { Empty, Facts, Failure, Id, Json, Loading, Notice, Panel, State, Time, useTitle } from "../ui/basic";
import { curlEntry, Menu } from "../ui/dialog";
import { Page } from "../ui/shell";
import { objectOf } from "./operate-part";

export function Requests() {
  const key = segments.value[1], operation = params.value.get("operation");
  useTitle(key ? "Request " + key : "Stored requests");
  const path = key ? p`/requests/${key}` : operation ? "/requests" + query({ operation, limit: 100 }) : null;
  const read = useGet<StoredRequests & { items: StoredRequest[] }>(path, { topics: ["operations"] });
  const all = read.value.value && (read.value.value.requests ?? read.value.value.items);
  return <Page title={key ? <>Request <code>{key}</code></> : "Stored requests"} crumbs={key ? <a href="/requests">Stored requests</a> : undefined} actions={path ? <Menu label="More" entries={[curlEntry("GET", path)]} /> : undefined}>
    {may("GET /requests") && <Find key={key} value={key ?? ""} />}
    {!may("GET /requests") && <Notice tone="waiting"><p>Only the role admin may read stored requests, because responses hold data that otherwise only their callers get.</p></Notice>}
    {read.error.value && (read.error.value.status === 404 && key ? <Empty title="No request with this key">A request is stored for 24 hours with the hash of its key. Keys belong to a workspace, and must be given whole.</Empty> : <Failure error={read.error.value} retry={read.reload} />)}
    {!path && <Empty title="What was a caller told?" command={"curl -H 'Idempotency-Key: pay-order-7' …\nholdfast requests show pay-order-7"}>Type the Idempotency-Key of a request that changed something. Each route that used the key is listed, with the response that was sent.</Empty>}
    {path && !all && !read.error.value && <Loading />}
    {all && (all.length ? all.map(r => <Stored key={r.id} r={r} />) : <Empty title="No request with this key" command="holdfast requests show KEY">A request is stored for 24 hours with the hash of its key. Keys belong to a workspace, and must be given whole.</Empty>)}
    {all && all.length > 1 && <p class="muted">{plural(all.length, "request")}: one for each route that used the key.</p>}
  </Page>;
}

function Find({ value }: { value: string }) {
  const [text, set] = useState(value);
  return <form class="filters" role="search" onSubmit={e => { e.preventDefault(); if (text.trim()) go(to.request(text.trim())); }}>
    <input type="search" aria-label="Idempotency key" placeholder="Idempotency key" value={text} onInput={e => set(e.currentTarget.value)} size={40} /><button type="submit">Show</button></form>;
}

function Stored({ r }: { r: StoredRequest }) {
  const object = r.subject ? objectOf({ kind: "action", subject: r.subject }) : undefined;
  const refused = r.status >= 400;
  return <Panel title={r.route} actions={<State of={r.state === "inFlight" ? "in flight" : r.state} tone={r.state === "inFlight" ? "active" : r.state === "operation" ? "active" : refused ? "danger" : "ok"} icon={r.state === "answered" ? (refused ? "x" : "check") : "clock"} />}>
    <div class="stack"><Facts of={[
      ["Told", r.state === "inFlight" ? "nothing yet: the request is in progress" : r.state === "operation" ? "the outcome of its operation" : <>status {r.status || "unknown"}</>], ["First received", <Time at={r.at} />],
      ["Operation", r.operation ? <Id id={r.operation} href={to.operation(r.operation)} most={40} /> : undefined], ["Subject", object?.href ? <a class="link" href={object.href}>{r.subject}</a> : r.subject], ["Id", <Id id={r.id} most={40} />]]} />
      {r.withheld ? <Notice tone="neutral" icon="lock"><p>The response is not shown, because it proves that its caller holds a lease.</p></Notice> : r.response !== undefined ? <Json value={r.response} label={"Response of " + r.route} /> : null}</div>
  </Panel>;
}
