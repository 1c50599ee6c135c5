import "./styles.css";
import { Component, type ComponentChildren, type ComponentType, render } from "preact";
import { useEffect } from "preact/hooks";
import { loadSession, Refused, session } from "./core/api";
import { segments } from "./core/router";
import { signal } from "@preact/signals";
import { Empty, Failure, Loading } from "./ui/basic";
import { Dialogs } from "./ui/dialog";
import { Shell } from "./ui/shell";
import { Inbox, useInboxCount } from "./pages/inbox";
import { Login } from "./pages/login";
import { Approvals } from "./pages/approvals";
import { Audit } from "./pages/audit";
import { Batches } from "./pages/batches";
import { Bulk } from "./pages/bulk";
import { Definitions } from "./pages/definitions";
import { Handlers } from "./pages/handlers";
import { Keys } from "./pages/keys";
import { Lifecycles } from "./pages/lifecycles";
import { Nodes } from "./pages/nodes";
import { Operations } from "./pages/operations";
import { Overview } from "./pages/overview";
import { Races } from "./pages/races";
import { Reactions } from "./pages/reactions";
import { Requests } from "./pages/requests";
import { Runs } from "./pages/runs";
import { Scopes } from "./pages/scopes";
import { Streams } from "./pages/streams";
import { Wallets } from "./pages/wallets";
import { Webhooks } from "./pages/webhooks";

const pages: Record<string, ComponentType> = {
  "": Inbox, overview: Overview, lifecycles: Lifecycles, runs: Runs, definitions: Definitions, approvals: Approvals, batches: Batches, wallets: Wallets, streams: Streams, reactions: Reactions, scopes: Scopes, operations: Operations, races: Races, bulk: Bulk, handlers: Handlers, webhooks: Webhooks, nodes: Nodes, keys: Keys, audit: Audit, requests: Requests,
};

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
  const Found = pages[segments.value[0] ?? ""];
  return <><Shell>{Found ? <Boundary key={segments.value[0] ?? ""}><Found /></Boundary> : <Empty title="This page does not exist">Choose one on the left, or press ⌘K.</Empty>}</Shell><Dialogs /></>;
}

render(<App />, document.body);
