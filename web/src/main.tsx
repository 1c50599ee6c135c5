import "./styles.css";
import "./pages/lifecycles.css";
import "./pages/operate.css";
import "./pages/reactions.css";
import "./pages/streams.css";
import "./pages/work.css";
import { useEffect } from "preact/hooks";
import { Component, type ComponentChildren, type ComponentType, render } from "preact";
import { loadSession, Refused, session } from "./core/api";
import { readEarly } from "./core/data";
import { params, segments } from "./core/router";
import { signal } from "@preact/signals";
import { Empty, Failure, Loading } from "./ui/basic";
import { Dialogs } from "./ui/dialog";
import { Shell } from "./ui/shell";
import { Inbox, inboxPath, useInboxCount } from "./pages/inbox";
import { Login } from "./pages/login";

const failed = signal<Refused | null>(null);
const load = () => { failed.value = null; return loadSession(begin()).catch(e => (failed.value = e)); };

/** The pages but the inbox, or the error of reading them. */
const others = signal<Record<string, ComponentType> | Error | null>(null);
let reading = false;
function readOthers() {
  if (reading) return;
  reading = true;
  import("./pages/all").then(m => (others.value = m.pages), e => (others.value = e));
}

const moment = () => new Promise(r => setTimeout(r, 300));

/** Whether the first page is the whole inbox. The server then sends index.html, which asks for it, else page.html, which asks for the other pages. */
const inboxFirst = !segments.value[0] && !params.value.has("kind");

/**
 * begin reads what the first page shows, and returns a function that waits for it, but not long. The request does not wait
 * for the session: index.html sends both before this code is here. So it names no workspace. If another tab has logged in
 * to another one between the two, the request for the counts is refused, and the session is read again.
 */
function begin(): () => Promise<unknown> {
  if (!inboxFirst) return async () => undefined;
  const inbox = readEarly(inboxPath(""), { headers: { "X-Holdfast-Workspace": "" } }).catch(() => undefined); // if it failed, the page reads it again, and shows the error
  return () => Promise.race([moment(), inbox]);
}

function App() {
  const s = session.value;
  if (failed.value) return <main class="login"><Failure error={failed.value} retry={() => void load()} /></main>;
  if (s === null) return <main class="login"><Loading /></main>;
  if (s === false) return <Login />;
  return <Inside />;
}

/** Boundary shows an error of a page instead of leaving what it drew before. */
class Boundary extends Component<{ children: ComponentChildren }, { error?: Error }> {
  override state: { error?: Error } = {};
  override componentDidCatch(error: Error) { this.setState({ error }); }
  override render() {
    return this.state.error ? <Failure error={new Refused("PAGE_FAILED", "This page cannot be drawn: " + this.state.error.message, 0, "")} retry={() => location.reload()} /> : this.props.children;
  }
}

function Inside() {
  useInboxCount();
  useEffect(() => void ("requestIdleCallback" in window ? requestIdleCallback(readOthers, { timeout: 2000 }) : setTimeout(readOthers, 200)), []);
  const name = segments.value[0] ?? "";
  return <><Shell><Boundary key={name}>{name ? <Other name={name} /> : <Inbox />}</Boundary></Shell><Dialogs /></>;
}

function Other({ name }: { name: string }) {
  const all = others.value;
  if (!all) { readOthers(); return <Loading />; }
  if (all instanceof Error) return <Failure error={new Refused("PAGE_FAILED", "The code of this page cannot be read. The server may have been upgraded, or cannot be reached.", 0, "")} retry={() => location.reload()} />;
  const Found = all[name];
  return Found ? <Found /> : <Empty title="This page does not exist">Choose one on the left, or press ⌘K.</Empty>;
}

if (!inboxFirst) readOthers();
// What the first page needs is usually here before a frame with nothing in it would be.
void Promise.race([moment(), load()]).then(() => render(<App />, document.body));
