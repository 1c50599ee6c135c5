// Parts that several pages about the operation of a server share.
import type { ComponentChildren } from "preact";
import type { BulkPreview, NewBulk, Operation } from "../api.gen";
import { act, query, Refused } from "../core/api";
import { duration, number, plural, sentence, words } from "../core/format";
import { params, setParams, subjectLink, to } from "../core/router";
import { CopyButton, Id, Notice, State } from "../ui/basic";
import { ask, type Field, tell, toast, type Values } from "../ui/dialog";

/** Actor names who did something. An API key has a page. */
export function Actor({ of, none = "–" }: { of: string; none?: string }) {
  if (!of) return <span class="muted">{none}</span>;
  return of.startsWith("key:") ? <Id id={of} href={to.key(of.slice(4))} /> : <>{of}</>;
}

/** The object of an operation: its page and a short name. */
export function objectOf(o: Pick<Operation, "kind" | "subject">): { href: string; name: string; stream?: string; entity?: { lifecycle: string; id: string }; run?: { id: string; step: string } } {
  const m = /^(run|batch|reaction) (.+) (step|item|stream) (.+)$/.exec(o.subject);
  if (m && o.kind !== "action") {
    const href = m[1] === "run" ? to.run(m[2]) : m[1] === "batch" ? to.batch(m[2]) : to.reaction(m[2]);
    return { href, name: o.subject, stream: m[1] === "run" ? "$run/" + m[2] : undefined, run: m[1] === "run" ? { id: m[2], step: m[4] } : undefined };
  }
  const cut = o.subject.indexOf("/"), lifecycle = o.subject.slice(0, cut), id = o.subject.slice(cut + 1);
  if (cut < 0) return { href: "", name: o.subject };
  return { href: to.entity(lifecycle, id), name: o.subject, stream: "$entity/" + o.subject, entity: { lifecycle, id } };
}

/** auditSubject returns the page of a subject in the audit, such as key/06gt…. */
export function auditSubject(subject: string): string | undefined {
  const cut = subject.indexOf("/"), kind = subject.slice(0, cut), id = subject.slice(cut + 1);
  if (cut < 0) return undefined;
  switch (kind) {
    case "key": return to.key(id);
    case "webhook": return to.webhook(id);
    case "secret": return to.secret(id);
    case "handler": return to.handler(id);
    case "lifecycle": return to.lifecycle(id);
    case "reaction": return to.reaction(id.split("/")[0]);
    case "bulk": return to.bulk(id);
    case "operation": return to.operation(id);
    case "stream": return to.stream(id);
    case "run": return to.run(id);
    case "entity": case "scope": return subjectLink("$" + subject);
  }
}

/** Secret shows what is shown only once. */
export const Secret = ({ text }: { text: string }) => <p class="secret"><code>{text}</code><CopyButton text={text} what="secret" /></p>;

/** tellSecret shows a new secret until the person closes it. A replayed response has none. */
export function tellSecret(title: string, secret: string | undefined, how: ComponentChildren): void {
  tell(title, secret
    ? <><p>{how} It is shown only now: copy it before you close this.</p><Secret text={secret} /></>
    : <p>The request had already been made, and its response shows the secret only the first time. Rotate to get a new one.</p>);
}

/** What a bulk acts on, in words. */
const nouns: Record<string, string> = { run: "run", reaction: "stream", operation: "operation" };
export const bulkNoun = (action: string) => nouns[action.split(".")[0]] ?? "object";

/**
 * startBulk asks for the fields of a bulk, if it has any, then for a dry run, and says how many objects the bulk would act on before it
 * is started.
 */
export function startBulk(o: { title: string; label: string; danger?: boolean; fields?: Field[]; body?: ComponentChildren; make: (v: Values) => NewBulk; said?: (bulk: NewBulk) => ComponentChildren; done?: () => void }): void {
  const confirm = (bulk: NewBulk, p: BulkPreview) => p.total === 0 ? toast(<>Nothing permits this action now.{p.refusedTotal > 0 && <> {sentence(p.refused[0].message ?? p.refused[0].code ?? "")}</>}</>, "waiting") : ask({
    title: o.title, label: `${o.label} ${plural(p.total, bulkNoun(bulk.action))}`, danger: o.danger, method: "POST", path: "/bulk", touches: p.total, send: () => bulk, body: <Preview of={p} action={bulk.action} said={o.said?.(bulk)} />,
    said: r => r?.bulk ? <>Started. <a class="link" href={to.bulk(r.bulk.id)}>Show the progress</a></> : "Started.", done: () => o.done?.(),
  });
  if (o.fields?.length) {
    ask({ title: o.title, label: "Check what it acts on", fields: o.fields, body: o.body, method: "POST", path: "/bulk", send: v => ({ ...o.make(v), dryRun: true }), said: "", done: (r, v) => confirm(o.make(v), r.preview) });
    return;
  }
  const bulk = o.make({});
  void act<{ preview: BulkPreview }>("POST", "/bulk", { ...bulk, dryRun: true }).then(r => confirm(bulk, r.preview),
    (e: Refused) => toast(<>{sentence(e.message)} <code>{e.code}</code></>, "danger"));
}

function Preview({ of: p, action, said }: { of: BulkPreview; action: string; said?: ComponentChildren }) {
  return <div class="stack tight">
    <p>It acts on <strong>{plural(p.total, bulkNoun(action))}</strong>, in the background. Each is checked again before it is changed, and those that are refused are listed.</p>
    {said}
    {p.refusedTotal > 0 && <Notice tone="danger"><p>{plural(p.refusedTotal, "object")} would be refused now: {p.refused[0].message ?? p.refused[0].code}{p.refusedTotal > 1 ? " …" : ""}</p></Notice>}
    {p.members.length > 0 && <ul class="few" tabIndex={0} aria-label="The first objects">{p.members.slice(0, 20).map(m => <li key={m.id}><Id id={m.id} most={44} />{m.state && <State of={m.state} />}</li>)}{p.total > 20 && <li class="muted">and {number(p.total - Math.min(20, p.members.length))} more</li>}</ul>}
  </div>;
}

/** Lengths of time as fields of dialogs, in ms. */
export const lengths = (all: [string, number][]) => all.map(([label, ms]) => ({ value: String(ms), label }));
export const lengthText = (ms: number) => (ms ? duration(ms) : "–");

/** list writes names with commas. */
export const list = (all: readonly string[] | null | undefined, none = "none") => (all?.length ? all.join(", ") : none);

/** parts splits what a person typed at commas. */
export const parts = (text: string | undefined) => (text ?? "").split(/[,\n]/).map(s => s.trim()).filter(Boolean);

/** DateFilter is a filter by a time that the person types; the address has it as RFC 3339. */
export function DateFilter({ name, label }: { name: string; label: string }) {
  const at = params.value.get(name) ?? "";
  const local = at && !Number.isNaN(Date.parse(at)) ? new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 16) : "";
  return <input type="datetime-local" aria-label={label} title={label} value={local} onChange={e => setParams({ [name]: e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : "" })} />;
}

/** Missing is shown beside a list if it has no such row. */
export const Missing = ({ what, id }: { what: string; id: string }) => <div class="empty"><strong>No such {what}</strong><p>{sentence(what)} <code>{id}</code> is not in the list. It may have been deleted, or be further down: load more rows, or remove the filters.</p></div>;

export { query, words };
