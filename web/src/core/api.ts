// Requests to the HTTP API. Everything that the dashboard shows or does goes through here.
import { signal } from "@preact/signals";
import { roles, type Problem, type Session } from "../api.gen";

const base = "/api/v1";

/** A request that the API refused, or that did not reach it. It keeps what a person needs to report it. */
export class Refused extends Error {
  constructor(readonly code: string, message: string, readonly status: number, readonly requestId: string, readonly problem?: Problem) {
    super(message);
  }
}

/** The session; null while it is not known, false if the caller must log in. */
export const session = signal<Session | null | false>(null);

/** The clock of the server minus the clock of this browser, in ms. Countdowns use it. */
export const skew = signal(0);

/** now is the server's time, as far as it is known. */
export const now = () => Date.now() + skew.value;

export interface Options {
  method?: string;
  body?: unknown;
  /** Sent as Idempotency-Key, so that a repetition is the same action. */
  key?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** call sends a request and returns the response's document. path begins after /api/v1. */
export async function call<T>(path: string, o: Options = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json", ...o.headers };
  const anyWorkspace = headers["X-Holdfast-Workspace"] === "";
  if (anyWorkspace) delete headers["X-Holdfast-Workspace"];
  if (o.body !== undefined) headers["Content-Type"] ??= "application/json";
  if (o.key) headers["Idempotency-Key"] = o.key;
  // Another tab may have logged in to another workspace: then the API refuses the request, instead of acting there.
  if (session.value && !anyWorkspace && !headers.Authorization) headers["X-Holdfast-Workspace"] ??= session.value.workspace;
  let r: Response, text: string;
  try {
    r = await fetch(base + path, { method: o.method ?? "GET", headers, body: o.body === undefined ? undefined : JSON.stringify(o.body), signal: o.signal });
    text = await r.text();
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new Refused("UNREACHABLE", "The server cannot be reached, or its response was lost.", 0, "");
  }
  let doc: any;
  try {
    doc = text ? JSON.parse(text) : undefined;
  } catch {
    throw new Refused("NOT_JSON", "The response is not JSON. Is there a proxy between this page and the server?", r.status, r.headers.get("X-Request-Id") ?? "");
  }
  if (r.ok) return doc as T;
  if (r.status === 401 && session.value) session.value = false;
  if (r.status === 403 && session.value && path !== "/session") void loadSession().catch(() => undefined);
  throw new Refused(doc?.code ?? "HTTP_" + r.status, doc?.detail ?? r.statusText, r.status, doc?.requestId ?? r.headers.get("X-Request-Id") ?? "", doc);
}

export const get = <T>(path: string, o?: Options) => call<T>(path, o);

/** act sends a request that changes something, under a key of its own. */
export const act = <T>(method: string, path: string, body?: unknown, key: string = newKey(), headers?: Record<string, string>) =>
  call<T>(path, { method, body, key, headers });

/** newKey returns a new idempotency key. A form takes one when it opens, so that a double click is one action. */
export const newKey = () => "ui-" + (crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, "0")).join(""));

/** may reports whether the role of the session permits a route, such as "POST /workflow-runs/{id}/retry". */
export function may(route: string): boolean {
  const s = session.value;
  return !!s && (roles[route]?.includes(s.role) ?? s.role === "admin");
}

/** matches reports whether a path is one of a route. */
function matches(route: string, path: string): boolean {
  const want = route.split("/"), parts = path.split("/");
  return want.length === parts.length && want.every((w, i) => w === parts[i] || w.startsWith("{") && parts[i] !== "");
}

/** mayCall reports whether the role permits a request to a path, which may begin with /api/v1. */
export function mayCall(method: string, path: string): boolean {
  const p = path.replace(/^\/api\/v1/, "").split("?")[0];
  const found = Object.keys(roles).find(route => route.startsWith(method + " ") && matches(route.slice(method.length + 1), p));
  return !found || may(found);
}

/** mayActAs reports whether the key may act for a requester. */
export function mayActAs(requester: string): boolean {
  const s = session.value;
  return !!s && (s.requesters.includes("*") || s.requesters.includes(requester));
}

/** p builds a path; each value becomes one segment: p`/workflow-runs/${id}`. */
export function p(strings: TemplateStringsArray, ...values: (string | number)[]): string {
  return strings.reduce((all, s, i) => all + encodeURIComponent(String(values[i - 1])) + s);
}

/** query builds a query string from what is set. */
export function query(values: Record<string, string | number | boolean | undefined | null>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(values)) if (v !== undefined && v !== null && v !== "" && v !== false) q.set(k, String(v));
  const text = q.toString();
  return text ? "?" + text : "";
}

/** curl returns a request as a command for a shell. The key is a variable, so that the text holds no secret. */
export function curl(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): string {
  const s = session.value;
  const q = (t: string) => "'" + t.replaceAll("'", `'\\''`) + "'";
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${q(location.origin + base + path.replace(/^\/api\/v1/, ""))}`];
  if (s && s.login) lines.push(`-H "Authorization: Bearer $HOLDFAST_KEY"`);
  if (method !== "GET") lines.push(`-H ${q("Idempotency-Key: " + newKey())}`);
  for (const [k, v] of Object.entries(headers)) lines.push(`-H ${q(k + ": " + v)}`);
  if (body !== undefined) lines.push(`-H 'Content-Type: application/json'`, `-d ${q(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** loadSession asks who the caller is. first is done before the session is shown. */
export async function loadSession(first?: () => Promise<unknown>): Promise<void> {
  try {
    const before = Date.now();
    const s = await call<Session>("/session", { headers: { "X-Holdfast-Workspace": "" } });
    if (s.now) skew.value = Date.parse(s.now) - (before + Date.now()) / 2;
    await first?.();
    session.value = s;
  } catch (e) {
    if ((e as Refused).status !== 401) throw e;
    session.value = false;
  }
}

export async function logIn(key: string): Promise<void> {
  await call("/session", { method: "POST", headers: { Authorization: "Bearer " + key } });
  await loadSession();
}

export async function logOut(): Promise<void> {
  await call("/session", { method: "DELETE" });
  session.value = false;
}
