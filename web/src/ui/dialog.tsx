// Dialogs, menus and messages. A request whose outcome is not known keeps its idempotency key, so that a double click, or a
// repetition after a lost response, is the same action.
import { signal } from "@preact/signals";
import { type ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { act, curl, mayCall, newKey, Refused } from "../core/api";
import { number, plural, sentence } from "../core/format";
import { Button, copyText, Failure, Icon, type IconName, Notice, type Tone } from "./basic";

interface Toast { id: number; tone: Tone; text: ComponentChildren; link?: { href: string; label: string } }
const toasts = signal<Toast[]>([]);
let lastToast = 0;

/** toast says what happened. */
export function toast(text: ComponentChildren, tone: Tone = "ok", link?: Toast["link"]): void {
  const t = { id: ++lastToast, tone, text, link };
  toasts.value = [...toasts.value.slice(-3), t];
  setTimeout(() => (toasts.value = toasts.value.filter(x => x !== t)), tone === "ok" ? 4000 : 10_000);
}

const toneIcons: Record<Tone, IconName> = { ok: "check", active: "play", waiting: "clock", danger: "x", uncertain: "question", neutral: "dot" };

export function Toasts() {
  return <div class="toasts" role="log" aria-live="polite">{toasts.value.map(t =>
    <div class={"toast tone-" + t.tone} key={t.id}><Icon name={toneIcons[t.tone]} /><p class="grow">{t.text}{t.link && <> <a class="link" href={t.link.href}>{t.link.label}</a></>}</p>
      <Button class="quiet icon-only small" aria-label="Dismiss" icon="x" onClick={() => (toasts.value = toasts.value.filter(x => x !== t))} /></div>)}</div>;
}

/** A field of a dialog. */
export interface Field {
  name: string;
  label: string;
  help?: string;
  kind?: "text" | "number" | "json" | "select" | "checkbox" | "password" | "textarea";
  options?: { value: string; label: string }[];
  value?: string;
  required?: boolean;
  placeholder?: string;
}

/** What a dialog asks for, and the request that it then sends. */
export interface Ask {
  title: string;
  /** What happens, to what, in one or two sentences. It may depend on the fields. */
  body?: ComponentChildren | ((values: Values) => ComponentChildren);
  label: string;
  danger?: boolean;
  fields?: Field[];
  /** Above 10, the person types the number of what is touched. It may depend on the fields. */
  touches?: number | ((values: Values) => number);
  method: string;
  path: string | ((values: Values) => string);
  /** The body of the request, made from the fields. */
  send?: (values: Values) => unknown;
  /** Sends the request instead of the usual way. */
  run?: (values: Values, key: string) => Promise<unknown>;
  headers?: (values: Values) => Record<string, string>;
  done?: (result: any, values: Values) => void;
  /** There is nothing to decide: the dialog shows its body until it is closed with its button. */
  tell?: boolean;
  /** Said when it has succeeded; the default is the title. "" says nothing. */
  said?: ComponentChildren | ((result: any) => ComponentChildren);
}
export type Values = Record<string, any>;

const asking = signal<{ ask: Ask; n: number } | null>(null);
let lastAsk = 0;

/** ask opens a dialog. */
export function ask(a: Ask): void { asking.value = { ask: a, n: ++lastAsk }; }

/** tell opens a dialog that shows something, such as a secret, until a person closes it. */
export const tell = (title: string, body: ComponentChildren): void => ask({ title, body, label: "Close", tell: true, method: "GET", path: "", run: async () => undefined, said: "" });

/** Keys of requests whose outcome is not known, and of those in flight: a repetition is the same action, also from another dialog. */
const unanswered = new Map<string, string>();
const flying = new Map<string, Promise<any>>();

/** send sends a request that changes something. While it is in flight, the same request is not sent again. */
function send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<any> {
  const what = JSON.stringify([method, path, body, headers]);
  const same = flying.get(what);
  if (same) return same;
  const key = unanswered.get(what) ?? newKey();
  unanswered.set(what, key);
  const sent = act<any>(method, path, body, key, headers).then(result => { unanswered.delete(what); return result; }, e => {
    if (e instanceof Refused && e.status > 0 && e.status < 500) unanswered.delete(what);
    throw e;
  }).finally(() => flying.delete(what));
  flying.set(what, sent);
  return sent;
}

/** nothing says that a repair has changed nothing, as its response tells; else undefined. */
export function nothing(result: any): ComponentChildren | undefined {
  if (!result || !Array.isArray(result.streams) || result.streams.length > 0) return undefined;
  return result.held?.length ? "Nothing was changed: a worker holds the stream. Try again when its lease ends." : "Nothing was changed: the stream was not blocked any more.";
}

/** quick sends a request at once and says what happened. */
export async function quick(method: string, path: string, body: unknown, said: ComponentChildren, done?: (result: any) => void): Promise<boolean> {
  try {
    const result = await send(method, path.replace(/^\/api\/v1/, ""), body), none = nothing(result);
    toast(none ?? said, none ? "waiting" : "ok");
    done?.(result);
    return true;
  } catch (e) {
    const r = e as Refused;
    toast(<>{sentence(r.message)} <code>{r.code}</code>{r.requestId && <> request <code>{r.requestId}</code></>}</>, "danger");
    return false;
  }
}

export function Dialogs() {
  const a = asking.value;
  return <>{a && <AskDialog key={a.n} ask={a.ask} close={() => { if (asking.value === a) asking.value = null; }} />}<Toasts /></>;
}

const instead = "Send the request with curl or the command line.";

/** exact reports whether a document has only numbers that the browser has not rounded: the API keeps numbers as they are written. */
function exact(v: unknown): boolean {
  if (typeof v === "number") return !Number.isInteger(v) || Number.isSafeInteger(v);
  return !v || typeof v !== "object" || Object.values(v).every(exact);
}

function parse(fields: Field[], raw: Record<string, string | boolean>): { values: Values; wrong?: string } {
  const values: Values = {};
  for (const f of fields) {
    const v = raw[f.name];
    if (f.kind === "checkbox") { values[f.name] = !!v; continue; }
    const text = String(v ?? "");
    if (text === "") { if (f.required) return { values, wrong: `${f.label} is required.` }; continue; }
    if (f.kind === "number") {
      if (!/^-?\d+(\.\d+)?$/.test(text)) return { values, wrong: `${f.label} must be a number.` };
      values[f.name] = Number(text);
      if (!exact(values[f.name])) return { values, wrong: `${f.label} is too large for this page. ${instead}` };
    } else if (f.kind === "json") {
      try { values[f.name] = JSON.parse(text); } catch (e) { return { values, wrong: `${f.label} is not JSON: ${(e as Error).message}` }; }
      if (!exact(values[f.name])) return { values, wrong: `${f.label} has an integer beyond 2^53, which a browser rounds. ${instead}` };
    } else values[f.name] = text;
  }
  return { values };
}

function AskDialog({ ask: a, close }: { ask: Ask; close: () => void }) {
  const ref = useRef<HTMLDialogElement>(null), title = useId();
  const [key] = useState(newKey);
  const over = useRef(false); // the dialog is closed
  useEffect(() => () => { over.current = true; }, []);
  const fields = a.fields ?? [];
  const [raw, set] = useState<Record<string, string | boolean>>(() => Object.fromEntries(fields.map(f => [f.name, f.kind === "checkbox" ? f.value === "true" : f.value ?? (f.options?.[0]?.value ?? "")])));
  const [error, setError] = useState<Refused>(), [wrong, setWrong] = useState(""), [busy, setBusy] = useState(false), [typed, setTyped] = useState("");
  const known = parse(fields, raw).values;
  const touched = typeof a.touches === "function" ? a.touches(known) : a.touches ?? 0;
  const count = touched > 10 ? String(touched) : "";
  useEffect(() => {
    ref.current?.showModal();
    ref.current?.querySelector<HTMLElement>(fields.length || count ? "label.field :is(input, select, textarea)" : a.danger ? "footer .back" : "footer [type=submit]")?.focus();
  }, []);
  const request = (values: Values) => ({ path: typeof a.path === "string" ? a.path : a.path(values), body: a.send ? a.send(values) : undefined });
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy) return;
    const { values, wrong } = parse(fields, raw);
    setWrong(wrong ?? "");
    if (wrong) return;
    if (count && typed.replace(/[,\s]/g, "") !== count) { setWrong(`Type ${count} to confirm.`); return; }
    setBusy(true);
    setError(undefined);
    try {
      const r = request(values);
      const result = a.run ? await a.run(values, key) : await send(a.method, r.path, r.body, a.headers?.(values));
      const said = typeof a.said === "function" ? a.said(result) : a.said, none = nothing(result);
      if (none) toast(none, "waiting");
      else if (said !== "") toast(said ?? a.title + ": done");
      if (!over.current) { ref.current?.close(); close(); }
      a.done?.(result, values);
    } catch (e) {
      setError(e instanceof Refused ? e : new Refused("INTERNAL", String(e), 0, ""));
      setBusy(false);
    }
  };
  const copy = () => { const { values } = parse(fields, raw), r = request(values); void copyText(curl(a.method, r.path, r.body, a.headers?.(values))).then(() => toast("Copied as curl.")); };
  return <dialog ref={ref} aria-labelledby={title} onClose={close} onCancel={e => { if (busy || a.tell) e.preventDefault(); }} onClick={e => { if (e.target === ref.current && !a.tell && !busy) ref.current?.close(); }}>
    <form onSubmit={submit} data-request={a.tell ? undefined : `${a.method} ${request(known).path}`}>
      <h1 id={title}>{a.title}</h1>
      {a.body && <div>{typeof a.body === "function" ? a.body(known) : a.body}</div>}
      {fields.map(f => <label class="field" key={f.name}>
        {f.kind === "checkbox" ? <span class="row"><input type="checkbox" checked={!!raw[f.name]} onChange={e => set({ ...raw, [f.name]: e.currentTarget.checked })} />{f.label}</span> : <>{f.label}
          {f.kind === "select" ? <select value={String(raw[f.name])} onChange={e => set({ ...raw, [f.name]: e.currentTarget.value })}>{f.options?.map(o => <option value={o.value} key={o.value}>{o.label}</option>)}</select>
            : f.kind === "json" || f.kind === "textarea" ? <textarea spellcheck={false} placeholder={f.placeholder} value={String(raw[f.name])} onInput={e => set({ ...raw, [f.name]: e.currentTarget.value })} />
            : <input type={(f.kind === "password" ? "password" : "text") as "text"} inputMode={f.kind === "number" ? "decimal" : "text"} autocomplete="off" placeholder={f.placeholder} value={String(raw[f.name])} onInput={e => set({ ...raw, [f.name]: e.currentTarget.value })} />}</>}
        {f.help && <small>{f.help}</small>}
      </label>)}
      {count && <label class="field">Type {number(touched)} to confirm that {plural(touched, "object")} may change<input type="text" inputMode="numeric" autocomplete="off" value={typed} onInput={e => setTyped(e.currentTarget.value)} /></label>}
      {wrong && <Notice tone="danger"><p>{wrong}</p></Notice>}
      {error && <Failure error={error} />}
      <footer>
        {!a.run && <Button class="quiet" onClick={copy} icon="copy">Copy as curl</Button>}
        <span class="grow" />
        {!a.tell && <Button class="back" disabled={busy} onClick={() => ref.current?.close()}>Cancel</Button>}
        <button type="submit" class={a.danger ? "primary danger" : "primary"} disabled={busy}>{busy ? "Sending…" : a.label}</button>
      </footer>
    </form>
  </dialog>;
}

/** An entry of a menu. */
export interface Entry { label: ComponentChildren; icon?: IconName; run: () => void; danger?: boolean; hidden?: boolean }

/** Menu is a button that opens a list of entries. */
export function Menu({ label, entries, icon = "more", text }: { label: string; entries: Entry[]; icon?: IconName; text?: ComponentChildren }) {
  const pop = useRef<HTMLDivElement>(null), button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const shown = entries.filter(e => !e.hidden);
  if (!shown.length) return null;
  const place = () => {
    const b = button.current!.getBoundingClientRect(), p = pop.current!;
    p.style.top = Math.min(b.bottom + 4, innerHeight - p.offsetHeight - 8) + "px";
    p.style.left = Math.max(8, Math.min(b.right - p.offsetWidth, innerWidth - p.offsetWidth - 8)) + "px";
    (p.querySelector("button") as HTMLElement | null)?.focus();
  };
  const move = (e: KeyboardEvent) => {
    const all = [...pop.current!.querySelectorAll("button")], i = all.indexOf(document.activeElement as HTMLButtonElement);
    const step = e.key === "ArrowDown" || e.key === "j" ? 1 : e.key === "ArrowUp" || e.key === "k" ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    e.stopPropagation();
    all[(i + step + all.length) % all.length].focus();
  };
  return <>
    <button ref={button} type="button" class={text ? "" : "quiet icon-only"} aria-label={label} aria-haspopup="true" popovertarget={id} onClick={e => e.stopPropagation()}>{text}<Icon name={icon} /></button>
    <div ref={pop} id={id} popover="auto" onToggle={(e: any) => { if (e.newState === "open") place(); }} onKeyDown={move} onClick={e => e.stopPropagation()}>
      {shown.map((e, i) => <button type="button" key={i} class={e.danger ? "tone tone-danger" : ""} onClick={() => { pop.current?.hidePopover(); e.run(); }}>{e.icon && <Icon name={e.icon} />}{e.label}</button>)}
    </div>
  </>;
}

/** curlEntry is the menu entry that copies a request. */
export const curlEntry = (method: string, path: string, body?: unknown): Entry => ({ label: "Copy as curl", icon: "copy", run: () => void copyText(curl(method, path, body)).then(() => toast("Copied as curl.")) });

/** Act is a button for a request; it is absent if the role does not permit the request. */
export function Act({ method, path, onClick, children, icon, class: c, title }: { method: string; path: string; onClick: () => void; children: ComponentChildren; icon?: IconName; class?: string; title?: string }) {
  if (!mayCall(method, path)) return null;
  return <Button icon={icon} class={c} title={title} onClick={onClick}>{children}</Button>;
}
