// ⌘K: finds ids, pages and actions.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Match, Matches } from "../api.gen";
import { get } from "../core/api";
import { sentence } from "../core/format";
import { go, to } from "../core/router";
import { theme, zone } from "../core/prefs";
import { Icon, type IconName, State } from "./basic";
import { navigationItems } from "./shell";

const open = signal(false);
export const openPalette = () => (open.value = true);

/** A page can offer its actions while it is shown. */
export interface Action { label: string; run: () => void; icon?: IconName }
export const pageActions = signal<Action[]>([]);

/** offer makes the actions of a page findable until the returned function is called. */
export function offer(actions: Action[]): () => void {
  offered.unshift(actions); // those of the details come before those of the list
  pageActions.value = offered.flat();
  return () => { offered.splice(offered.indexOf(actions), 1); pageActions.value = offered.flat(); };
}
const offered: Action[][] = [];

interface Option { group: string; label: string; icon: IconName; hint?: string; status?: string; run: () => void }

/** pageOf returns the page of what a search has found. */
export function pageOf(m: Match): string {
  switch (m.kind) {
    case "entity": return to.entity(m.lifecycle!, m.id);
    case "run": return to.run(m.id);
    case "batch": return to.batch(m.id);
    case "stream": return to.stream(m.id);
    case "wallet": return to.wallet(m.id);
    case "scope": return to.scope(m.scopeKind!, m.id);
    case "operation": return to.operation(m.id);
    case "request": return to.request(m.id);
    case "handler": return to.handler(m.id);
    case "reaction": return to.reaction(m.id);
    case "lifecycle": return to.lifecycle(m.id);
    case "definition": return to.definition(m.id);
    case "webhook": return to.webhook(m.id);
  }
}

export function Palette() {
  return open.value ? <PaletteDialog /> : null;
}

function PaletteDialog() {
  const ref = useRef<HTMLDialogElement>(null);
  const text = useSignal(""), found = useSignal<Match[]>([]), at = useSignal(0), failed = useSignal("");
  useEffect(() => { ref.current?.showModal(); }, []);
  useEffect(() => {
    const q = text.value.trim();
    failed.value = "";
    if (q.length < 2) { found.value = []; return; }
    const abort = new AbortController();
    const timer = setTimeout(() => get<Matches>("/search?q=" + encodeURIComponent(q), { signal: abort.signal }).then(r => (found.value = r.matches), e => { if (e.name !== "AbortError") failed.value = `${sentence(e.message)} (${e.code})`; }), 120);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [text.value]);
  const q = text.value.trim().toLowerCase();
  const fits = (s: string) => q.split(/\s+/).every(w => s.toLowerCase().includes(w));
  const options: Option[] = [
    ...found.value.map(m => ({ group: "Found", label: m.name && m.name !== m.id ? `${m.name} (${m.id})` : m.id, icon: "right" as IconName, hint: m.lifecycle ?? m.scopeKind ?? m.kind, status: m.status, run: () => go(pageOf(m)) })),
    ...pageActions.value.filter(a => fits(a.label)).map(a => ({ group: "Actions on this page", label: a.label, icon: a.icon ?? ("bolt" as IconName), run: a.run })),
    ...navigationItems.flatMap(g => g.items).filter(i => fits(i.label)).map(i => ({ group: "Pages", label: i.label, icon: i.icon, run: () => go("/" + i.path) })),
    ...[{ label: "Switch between local time and UTC", run: () => { zone.value = zone.value === "utc" ? "local" : "utc"; } }, { label: "Use the dark theme", run: () => { theme.value = "dark"; } }, { label: "Use the light theme", run: () => { theme.value = "light"; } }].filter(a => fits(a.label)).map(a => ({ group: "Preferences", icon: "sun" as IconName, ...a })),
  ];
  const i = Math.min(at.value, options.length - 1);
  const choose = (o?: Option) => { if (!o) return; ref.current?.close(); o.run(); };
  const keys = (e: KeyboardEvent) => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step) { e.preventDefault(); at.value = (i + step + options.length) % options.length; document.getElementById("option-" + at.value)?.scrollIntoView({ block: "nearest" }); }
    if (e.key === "Enter") { e.preventDefault(); choose(options[i]); }
  };
  return <dialog class="palette" ref={ref} aria-label="Find ids, pages and actions" onClose={() => (open.value = false)} onClick={e => { if (e.target === ref.current) ref.current?.close(); }}>
    <input type="text" role="combobox" aria-expanded="true" aria-controls="options" aria-activedescendant={options.length ? "option-" + i : undefined} aria-label="Find ids, pages and actions" placeholder="An id, a key, a name, a page, an action" autocomplete="off" spellcheck={false} value={text.value}
      onInput={e => { text.value = e.currentTarget.value; at.value = 0; }} onKeyDown={keys} />
    <div class="options" role="listbox" id="options" aria-label="Results">
      {failed.value && <p class="tone tone-danger" role="alert">{failed.value}</p>}
      {options.map((o, n) => <div key={n}>{(n === 0 || options[n - 1].group !== o.group) && <div role="presentation">{o.group}</div>}
        <div role="option" data-group={o.group} id={"option-" + n} aria-selected={n === i} onClick={() => choose(o)} onPointerMove={() => (at.value = n)}><Icon name={o.icon} /><span class="clip grow">{o.label}</span>{o.status && <State of={o.status} />}{o.hint && <span class="muted">{o.hint}</span>}</div></div>)}
      {!options.length && <div role="presentation">Nothing begins with this text.</div>}
    </div>
  </dialog>;
}
