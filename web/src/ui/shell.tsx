// The frame of all pages: navigation, search, the age of what is shown, preferences.
import { useSignal } from "@preact/signals";
import { type ComponentChildren } from "preact";
import { logOut, session } from "../core/api";
import { connected, heardAt, lag } from "../core/live";
import { absolute, duration, tick } from "../core/format";
import { useKeys, bound } from "../core/keyboard";
import { theme, zone } from "../core/prefs";
import { segments, to } from "../core/router";
import { inboxTotal } from "../pages/inbox";
import { Button, Icon, type IconName, Notice } from "./basic";
import { tell } from "./dialog";
import { openPalette, Palette } from "./palette";

export interface NavItem { path: string; label: string; icon: IconName }
export const navigationItems: { title: string; items: NavItem[] }[] = [
  { title: "", items: [{ path: "", label: "Inbox", icon: "inbox" }, { path: "overview", label: "Overview", icon: "chart" }] },
  { title: "Work", items: [
    { path: "lifecycles", label: "Lifecycles", icon: "cycle" }, { path: "runs", label: "Runs", icon: "flow" }, { path: "approvals", label: "Approvals", icon: "person" }, { path: "batches", label: "Batches", icon: "box" },
    { path: "wallets", label: "Wallets", icon: "wallet" }, { path: "streams", label: "Streams", icon: "stream" }, { path: "reactions", label: "Reactions", icon: "bolt" }, { path: "scopes", label: "Scopes", icon: "braces" }] },
  { title: "Operate", items: [
    { path: "operations", label: "Operations", icon: "lock" }, { path: "races", label: "Races", icon: "race" }, { path: "bulk", label: "Bulk actions", icon: "list" }, { path: "handlers", label: "Handlers", icon: "plug" },
    { path: "webhooks", label: "Webhooks", icon: "hook" }, { path: "nodes", label: "Nodes", icon: "server" }] },
  { title: "Access", items: [{ path: "keys", label: "API keys", icon: "key" }, { path: "secrets", label: "Secrets", icon: "lock" }, { path: "audit", label: "Audit log", icon: "flag" }] },
];

export function Shell({ children }: { children: ComponentChildren }) {
  const menu = useSignal(false), s = session.value, here = segments.value[0] ?? "";
  const item = navigationItems.flatMap(g => g.items).find(i => i.path === here);
  const switchTheme = () => (theme.value = theme.value === "system" ? "dark" : theme.value === "dark" ? "light" : "system");
  const switchZone = () => (zone.value = zone.value === "utc" ? "local" : "utc");
  const help = () => tell("Keyboard shortcuts",
    <table><tbody>{[...bound(), { key: "⌘K", what: "find anything" }].filter(b => b.key !== "mod+k").map(b => <tr key={b.key}><td><kbd>{b.key}</kbd></td><td>{b.what}</td></tr>)}</tbody></table>);
  useKeys({ "?": ["show the keyboard shortcuts", help], "mod+k": ["find anything", openPalette] });
  return <div class={menu.value ? "shell menu" : "shell"}>
    <nav aria-label="Pages" onClick={e => { if ((e.target as Element).closest("a")) menu.value = false; }}>
      <a class="brand" href="/"><img src="/icon.svg" alt="" />Holdfast</a>
      {navigationItems.map(g => <div key={g.title}>{g.title && <h3>{g.title}</h3>}<ul>{g.items.map(i => <li key={i.path}><a href={"/" + i.path} aria-current={i.path === here ? "page" : undefined}><Icon name={i.icon} />{i.label}{i.path === "" && <InboxCount />}</a></li>)}</ul></div>)}
      <footer>
        <a href={to.docs("")}><Icon name="question" />Documentation</a>
        <Button class="quiet" icon={theme.value === "dark" ? "moon" : "sun"} onClick={switchTheme}>Theme: {theme.value}</Button>
        <Button class="quiet" icon="clock" onClick={switchZone}>Times: {zone.value === "utc" ? "UTC" : "local"}</Button>
        {s && s.login && <Button class="quiet" icon="out" onClick={() => void logOut()}>Log out</Button>}
      </footer>
    </nav>
    <main>
      <header class="top">
        <Button class="quiet icon-only menu-button" icon="menu" aria-label="Pages" aria-expanded={menu.value} onClick={() => (menu.value = !menu.value)} />
        <strong class="hide-small">{item?.label ?? ""}</strong>
        <span class="grow hide-small" />
        <button type="button" class="find" onClick={openPalette}><Icon name="search" /><span class="grow clip">Find ids, pages and actions</span><kbd>⌘K</kbd></button>
        <Age />
        {s && <span class="muted nowrap hide-small" title={s.key ? `API key ${s.key.name} (${s.key.id})` : "this server runs without API keys"}>{s.workspace} · {s.role}</span>}
      </header>
      {children}
    </main>
    <Palette />
  </div>;
}

function InboxCount() {
  const n = inboxTotal.value;
  return n ? <span class="count tone-danger">{n > 999 ? "999+" : n}<span class="hidden"> entries</span></span> : null;
}

/** Age says how old what the page shows is. */
function Age() {
  tick.value;
  const state = connected.value, at = heardAt.value;
  if (state === "on") {
    const behind = lag.value > 3000;
    return <span class={"live " + (behind ? "tone-waiting" : "tone-ok")} title={`Changes arrive as they happen. The database was last read ${duration(lag.value)} before the last message.`}><i />{behind ? duration(lag.value) + " behind" : "Live"}</span>;
  }
  if (state === "lost") return <span class="live tone-danger" role="status" title={at ? "Last message: " + absolute(at) : ""}><i />{at ? `As of ${duration(Date.now() - at)} ago` : "Not connected"}</span>;
  return <span class="live tone-neutral"><i />{state === "connecting" ? "Connecting" : "Not live"}</span>;
}

/** Page is the content below the top line. */
export function Page({ title, crumbs, actions, children }: { title: ComponentChildren; crumbs?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren }) {
  return <div class="content"><div class="head">{crumbs && <div class="crumbs">{crumbs}<Icon name="right" /></div>}<h1>{title}</h1>{actions && <div class="actions">{actions}</div>}</div>{children}</div>;
}

/** Detail is the content of a thing, alone or beside its list. close leads back to the list. */
export function Detail({ title, state, close, actions, children }: { title: ComponentChildren; state?: ComponentChildren; close?: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return <div class="content"><div class="head">{close && <a class="button quiet icon-only" href={close + location.search} aria-label="Close"><Icon name="x" /></a>}<h1 class="clip">{title}</h1>{state}{actions && <div class="actions">{actions}</div>}</div>{children}</div>;
}

export { Notice };
