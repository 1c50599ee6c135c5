// The small parts that all pages are made of.
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused } from "../core/api";
import { absolute, relative, sentence, short, words } from "../core/format";

const paths = {
  check: "M3 8.5 6.5 12 13 4.5", x: "M4 4l8 8M12 4l-8 8", clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 5v3l2 2", play: "M5 3.5v9l7-4.5z", pause: "M5.5 3.5v9M10.5 3.5v9",
  question: "M6 6.2a2 2 0 1 1 2.8 1.9c-.5.3-.8.7-.8 1.4M8 12v.1M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8", warning: "M8 2.5 14 13H2zM8 6.5v3M8 11.3v.1", stop: "M4 4h8v8H4z", dot: "M8 6.5a1.5 1.5 0 1 0 0 3 1.5 1.5 0 0 0 0-3",
  inbox: "M2 9l2-6h8l2 6v4H2zM2 9h3.5l1 2h3l1-2H14", chart: "M2 13h12M4 13V8M8 13V3M12 13V6", cycle: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3", flow: "M3 3h4v4H3zM9 9h4v4H9zM5 7v4h4", person: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M3 13.5c.6-2.3 2.6-3.5 5-3.5s4.400 1.200 5 3.500",
  stream: "M2 5c2-2 4-2 6 0s4 2 6 0M2 10c2-2 4-2 6 0s4 2 6 0", bolt: "M9 1.500 3.500 9H8l-1 5.500L12.500 7H8z", box: "M2.500 5 8 2l5.500 3v6L8 14l-5.500-3zM2.500 5 8 8l5.500-3M8 8v6", wallet: "M2 4.500h10.500V13H2zM2 4.500 10 2.500v2M10 8.800h2.500", braces: "M6 2.500c-2 0-2 1-2 2.500S4 7.500 2.500 8C4 8.500 4 9.500 4 11s0 2.500 2 2.500M10 2.500c2 0 2 1 2 2.500s0 2.500 1.500 3c-1.500.500-1.500 1.500-1.500 3s0 2.500-2 2.500",
  lock: "M4 7h8v6.500H4zM5.500 7V5a2.500 2.500 0 0 1 5 0v2", plug: "M5 2v4M11 2v4M3.500 6h9v2a4.500 4.500 0 0 1-9 0zM8 12.500V15", hook: "M6 10.500a3 3 0 1 1-2.500-4.500M10 5.500a3 3 0 1 1-4.200 2.300M8.500 13a3 3 0 1 0 4-4.500", server: "M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5v.1M5 11v.1", key: "M10.500 2.500a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8.200 7.800 2.500 13.500M4.500 11.500l1.500 1.500", list: "M5.500 4H14M5.500 8H14M5.500 12H14M2.500 4v.1M2.500 8v.1M2.500 12v.1",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9M10.500 10.500 14 14", copy: "M5.500 5.500h8v8h-8zM3 10.500H2.500v-8h8V3", more: "M3.500 8v.1M8 8v.1M12.500 8v.1", right: "M6 3.500 10.500 8 6 12.500", left: "M10 3.500 5.500 8l4.500 4.500", down: "M3.500 6 8 10.500 12.500 6", menu: "M2 4h12M2 8h12M2 12h12", sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1", moon: "M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7", refresh: "M13 8a5 5 0 1 1-1.500-3.600M13 2v3h-3", out: "M6 2.500H2.500v11H6M10 5l3 3-3 3M13 8H6", link: "M6.500 9.500l3-3M7.500 4.500l1-1a2.800 2.800 0 0 1 4 4l-1 1M8.500 11.500l-1 1a2.800 2.800 0 0 1-4-4l1-1", plus: "M8 3v10M3 8h10", minus: "M3 8h10", flag: "M3.500 14V2.500h8l-1.500 3 1.500 3h-8", race: "M2 4h7M2 8h11M2 12h5M9 2.500v3M13 6.500v3M7 10.500v3", undo: "M3 7h7a3.500 3.500 0 0 1 0 7H6M3 7l3-3M3 7l3 3",
} as const;
export type IconName = keyof typeof paths;

export const Icon = ({ name }: { name: IconName }) => <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d={paths[name]} /></svg>;

export type Tone = "ok" | "active" | "waiting" | "danger" | "uncertain" | "neutral";

/** What a state is shown as. The same word has the same colour and icon on every page. */
const looks: Record<string, [Tone, IconName]> = {
  completed: ["ok", "check"], succeeded: ["ok", "check"], accepted: ["ok", "check"], approved: ["ok", "check"], done: ["ok", "check"], valid: ["ok", "check"], open: ["ok", "dot"], ready: ["ok", "check"], answered: ["ok", "check"], edited: ["ok", "check"], success: ["ok", "check"],
  running: ["active", "play"], held: ["active", "lock"], active: ["active", "play"], inflight: ["active", "play"], begun: ["active", "play"], leased: ["active", "lock"], finalizing: ["active", "play"], operation: ["active", "lock"],
  waiting: ["waiting", "clock"], pending: ["waiting", "clock"], due: ["waiting", "clock"], paused: ["waiting", "pause"], expired: ["waiting", "clock"], retrying: ["waiting", "clock"], closing: ["waiting", "clock"], cancelling: ["waiting", "clock"], warning: ["waiting", "warning"],
  failed: ["danger", "x"], blocked: ["danger", "stop"], rejected: ["danger", "x"], refused: ["danger", "x"], revoked: ["danger", "x"], stalled: ["danger", "warning"], gone: ["danger", "x"], failure: ["danger", "x"], invalid: ["danger", "x"],
  uncertain: ["uncertain", "question"], notdone: ["neutral", "undo"],
  cancelled: ["neutral", "stop"], skipped: ["neutral", "right"], ended: ["neutral", "dot"], closed: ["neutral", "lock"], refunded: ["neutral", "undo"], returned: ["neutral", "undo"],
};

export const toneOf = (state: string): Tone => looks[state.toLowerCase()]?.[0] ?? "neutral";

/** State shows a state with its colour, icon and word. */
export function State({ of, tone, icon, title }: { of: string; tone?: Tone; icon?: IconName; title?: string }) {
  const [t, i] = looks[of.toLowerCase()] ?? ["neutral", "dot"];
  return <span class={"state tone-" + (tone ?? t)} title={title}><Icon name={icon ?? i} /><span class="clip">{/^[A-Z_]+$/.test(of) ? words(of.toLowerCase()) : of}</span></span>;
}

/** Time shows a time as its distance from now; the absolute time is in its title. */
export function Time({ at, none = "–" }: { at: string | number | null | undefined; none?: string }) {
  if (at === null || at === undefined || at === "") return <span class="muted">{none}</span>;
  return <time dateTime={new Date(at).toISOString()} title={absolute(at)}>{relative(at)}</time>;
}

/** Id shows an id, shortened in the middle, which is copied whole. */
export function Id({ id, href, most }: { id: string; href?: string; most?: number }) {
  const text = short(id, most);
  return <span class="id" title={id}>{href ? <a href={href}>{text}</a> : text}<CopyButton text={id} what="id" /></span>;
}

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [done, set] = useState(false);
  const copy = (e: Event) => {
    e.preventDefault();
    e.stopPropagation();
    void copyText(text).then(() => { set(true); setTimeout(() => set(false), 1200); });
  };
  return <button class="copy" type="button" onClick={copy} aria-label={done ? "copied" : "copy " + what}><Icon name={done ? "check" : "copy"} /></button>;
}

/** copyText copies a text. Browsers offer the clipboard only on HTTPS and localhost; elsewhere it copies a selection. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Button({ icon, children, ...rest }: { icon?: IconName; children?: ComponentChildren } & ButtonHTMLAttributes<HTMLButtonElement>) {
  return <button type="button" {...rest}>{icon && <Icon name={icon} />}{children}</button>;
}

export function Panel({ title, actions, flush, children, id }: { title: ComponentChildren; actions?: ComponentChildren; flush?: boolean; children: ComponentChildren; id?: string }) {
  return <section class="panel" id={id}><header><h2>{title}</h2>{actions && <div class="actions">{actions}</div>}</header><div class={flush ? "body flush" : "body"}>{children}</div></section>;
}

/** Facts is a list of names and values; a value that is undefined is left out. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return <dl class="facts">{of.filter(([, v]) => v !== undefined).map(([k, v]) => <><dt>{k}</dt><dd>{v === null || v === "" ? <span class="muted">–</span> : v}</dd></>)}</dl>;
}

export function Notice({ tone, icon = "warning", children }: { tone: Tone; icon?: IconName; children: ComponentChildren }) {
  return <div class={"notice tone-" + tone} role="status"><Icon name={icon} /><div class="grow">{children}</div></div>;
}

/** Empty says what would be here and how it comes here. */
export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return <div class="empty"><strong>{title}</strong>{children && <p>{children}</p>}{command && <pre tabIndex={0}>{command.split("\n").map(addressed).join("\n")}</pre>}</div>;
}

/** addressed adds the address of this server to a command that calls one. */
const addressed = (command: string) => /^holdfast (?!dev|serve|.* --db )/.test(command) ? `${command} --url ${location.origin}` : command;

/** Failure shows a request that failed: its code, its request id, and a button that tries again. */
export function Failure({ error, retry }: { error: Refused; retry?: () => void }) {
  return <div class="failure" role="alert">
    <State of="failed" /><p><strong>{sentence(error.message)}</strong></p>
    <p class="muted">Code <code>{error.code}</code>{error.requestId && <> · request <Id id={error.requestId} most={40} /></>}</p>
    {retry && <Button icon="refresh" onClick={retry}>Retry</Button>}
  </div>;
}

export const Loading = () => <div class="empty" role="status"><span class="hidden">Loading</span><span aria-hidden="true">…</span></div>;

/** Json shows a document with coloured parts, as text. */
export function Json({ value, label = "JSON document" }: { value: unknown; label?: string }) {
  if (value === undefined) return <span class="muted">–</span>;
  const text = JSON.stringify(value, null, 2);
  if (text.length > 100_000) return <pre class="json" tabIndex={0} aria-label={label}>{text.slice(0, 100_000)}…</pre>;
  return <pre class="json" tabIndex={0} role="region" aria-label={label}>{colour(text)}</pre>;
}

const token = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)/g;

function colour(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let last = 0;
  for (const m of text.matchAll(token)) {
    out.push(text.slice(last, m.index));
    out.push(m[1] ? <><span class={m[2] ? "k" : "s"}>{m[1]}</span>{m[2]}</> : <span class={m[3] ? "n" : "b"}>{m[0]}</span>);
    last = m.index + m[0].length;
  }
  out.push(text.slice(last));
  return out;
}

/** Tabs shows one of several parts; the chosen one is in the address. */
export function Tabs({ all, value, onChange }: { all: { id: string; label: ComponentChildren }[]; value: string; onChange: (id: string) => void }) {
  const list = useRef<HTMLDivElement>(null);
  const move = (e: KeyboardEvent) => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    e.preventDefault();
    const i = (all.findIndex(t => t.id === value) + step + all.length) % all.length;
    onChange(all[i].id);
    (list.current?.children[i] as HTMLElement | undefined)?.focus();
  };
  return <div class="tabs" role="tablist" ref={list} onKeyDown={move}>{all.map(t =>
    <button type="button" role="tab" key={t.id} aria-selected={t.id === value} tabIndex={t.id === value ? 0 : -1} onClick={() => onChange(t.id)}>{t.label}</button>)}</div>;
}

/** useTitle sets the title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => { document.title = title ? title + " · Holdfast" : "Holdfast"; }, [title]);
}

/** Until shows how long something still lasts, and says when it is over. */
export function Until({ at, over = "past its end" }: { at: string | null; over?: string }) {
  if (!at) return <span class="muted">–</span>;
  const text = relative(at);
  return text.endsWith("ago") ? <span class="tone-danger tone" title={absolute(at)}>{over} ({text})</span> : <time dateTime={at} title={absolute(at)}>{text}</time>;
}
