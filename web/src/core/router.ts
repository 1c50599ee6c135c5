// The address bar is the state of the page: path, filters, sort and selection. So everything has a link.
import { computed, signal } from "@preact/signals";

const here = signal(location.pathname + location.search);
addEventListener("popstate", () => (here.value = location.pathname + location.search));

const url = computed(() => new URL(here.value, location.origin));

/** The segments of the path, decoded: /runs/run_1 is ["runs", "run_1"]. */
export const segments = computed(() => url.value.pathname.split("/").filter(Boolean).map(decode));

/** The parameters in the address. */
export const params = computed(() => url.value.searchParams);

function decode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

/** go opens an address of the dashboard. */
export function go(to: string, replace = false): void {
  if (to === here.value) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  here.value = location.pathname + location.search;
  if (!replace) scrollTo(0, 0);
}

/** setParams changes parameters in the address; an empty value removes one. */
export function setParams(change: Record<string, string | undefined | null>, replace = true): void {
  const next = new URL(url.value);
  for (const [k, v] of Object.entries(change)) v ? next.searchParams.set(k, v) : next.searchParams.delete(k);
  const to = next.pathname + next.search;
  if (to === here.value) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  here.value = to;
}

/** Links of the dashboard are followed without loading the page; with a modifier key the browser opens a tab. */
addEventListener("click", e => {
  const a = (e.target as Element | null)?.closest?.("a");
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || a.target || a.hasAttribute("download")) return;
  const to = new URL(a.href, location.href);
  if (to.origin !== location.origin || /^\/(api|docs)\//.test(to.pathname) || to.pathname === "/licenses.txt") return;
  e.preventDefault();
  go(to.pathname + to.search);
});

const part = encodeURIComponent;

/** Addresses of the pages. */
export const to = {
  inbox: () => "/",
  overview: () => "/overview",
  lifecycle: (name: string) => "/lifecycles/" + part(name),
  entity: (lifecycle: string, id: string) => `/lifecycles/${part(lifecycle)}/${part(id)}`,
  run: (id: string) => "/runs/" + part(id),
  definition: (id: string) => "/definitions/" + part(id),
  approval: (id: string) => "/approvals/" + part(id),
  stream: (name: string) => "/streams/" + part(name),
  reaction: (name: string) => "/reactions/" + part(name),
  batch: (id: string) => "/batches/" + part(id),
  wallet: (id: string) => "/wallets/" + part(id),
  scope: (kind: string, id: string) => `/scopes/${part(kind)}/${part(id)}`,
  operation: (id: string) => "/operations/" + part(id),
  handler: (name: string) => "/handlers/" + part(name),
  webhook: (id: string) => "/webhooks/" + part(id),
  node: (name: string) => "/nodes/" + part(name),
  secret: (name: string) => "/secrets/" + part(name),
  key: (id: string) => "/keys/" + part(id),
  bulk: (id: string) => "/bulk/" + part(id),
  request: (key: string) => "/requests/" + part(key),
  docs: (page: string) => "/docs/" + page,
  correlation: (id: string) => "/streams?correlation=" + part(id),
};

/** subjectLink returns the page of a stream name such as $entity/invoice/17 or of a user's stream. */
export function subjectLink(stream: string): string {
  if (!stream.startsWith("$")) return to.stream(stream);
  const [kind, a, ...rest] = stream.slice(1).split("/");
  const b = rest.join("/");
  switch (kind) {
    case "entity": return b ? to.entity(a, b) : to.lifecycle(a);
    case "run": return to.run([a, ...rest].join("/"));
    case "batch": return to.batch([a, ...rest].join("/"));
    case "scope": return to.scope(a, b);
    case "reaction": return to.reaction(a);
    case "webhook": return to.webhook(a);
    case "key": return to.key(a);
  }
  return to.stream(stream);
}
