import "./styles.css";
import { type ComponentType, render } from "preact";
import { useEffect } from "preact/hooks";
import { loadSession, Refused, session } from "./core/api";
import { segments } from "./core/router";
import { signal } from "@preact/signals";
import { Empty, Failure, Loading } from "./ui/basic";
import { Dialogs } from "./ui/dialog";
import { Shell } from "./ui/shell";
import { Inbox, useInboxCount } from "./pages/inbox";
import { Login } from "./pages/login";
import { Runs } from "./pages/runs";

const pages: Record<string, ComponentType> = { "": Inbox, runs: Runs };

const failed = signal<Refused | null>(null);
const load = () => { failed.value = null; void loadSession().catch(e => (failed.value = e)); };

function App() {
  useEffect(load, []);
  const s = session.value;
  if (failed.value) return <main class="login"><Failure error={failed.value} retry={load} /></main>;
  if (s === null) return <main class="login"><Loading /></main>;
  if (s === false) return <Login />;
  return <Inside />;
}

function Inside() {
  useInboxCount();
  const Found = pages[segments.value[0] ?? ""];
  return <><Shell>{Found ? <Found /> : <Empty title="This page does not exist">Choose one on the left, or press ⌘K.</Empty>}</Shell><Dialogs /></>;
}

render(<App />, document.body);
