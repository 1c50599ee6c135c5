// The difference between two documents, line by line.
import { Notice } from "./basic";

interface Line { kind: "same" | "add" | "del"; text: string }

/** sorted orders the members of objects, so that only what differs is shown. */
function sorted(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(sorted);
  if (v && typeof v === "object") return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, x]) => [k, sorted(x)]));
  return v;
}
const bare = (s: string) => s.replace(/,$/, ""); // the comma after a line is no difference
const linesOf = (v: unknown) => (v === null || v === undefined ? [] : JSON.stringify(sorted(v), null, 2).split("\n"));

/** linesBetween returns the lines of two documents, with those that were added and deleted; undefined if they are too long to compare. */
function linesBetween(before: unknown, after: unknown): Line[] | undefined {
  let a = linesOf(before), b = linesOf(after);
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && bare(a[head]) === bare(b[head])) head++;
  while (tail < a.length - head && tail < b.length - head && bare(a[a.length - 1 - tail]) === bare(b[b.length - 1 - tail])) tail++;
  const same = (l: string[]): Line[] => l.map(text => ({ kind: "same", text })), first = same(a.slice(0, head)), last = same(b.slice(b.length - tail));
  a = a.slice(head, a.length - tail);
  b = b.slice(head, b.length - tail);
  if (a.length * b.length > 4_000_000) return undefined;
  const w = b.length + 1, common = new Uint32Array((a.length + 1) * w); // length of the longest common part of the rest
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) common[i * w + j] = bare(a[i]) === bare(b[j]) ? common[(i + 1) * w + j + 1] + 1 : Math.max(common[(i + 1) * w + j], common[i * w + j + 1]);
  const middle: Line[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && bare(a[i]) === bare(b[j])) { middle.push({ kind: "same", text: a[i] }); i++; j++; }
    else if (j >= b.length || (i < a.length && common[(i + 1) * w + j] >= common[i * w + j + 1])) middle.push({ kind: "del", text: a[i++] });
    else middle.push({ kind: "add", text: b[j++] });
  }
  return [...first, ...middle, ...last];
}

/** Difference shows what changed between two documents; each line has a sign, not only a colour. */
export function Difference({ before, after, label }: { before: unknown; after: unknown; label: string }) {
  const lines = linesBetween(before, after);
  if (!lines) return <Notice tone="neutral"><p>The two versions are too long to compare here.</p></Notice>;
  if (!lines.some(l => l.kind !== "same")) return <p class="muted">The two versions are equal.</p>;
  const sign = { same: "  ", add: "+ ", del: "− " };
  return <pre class="diff" tabIndex={0} role="region" aria-label={label}>{lines.map((l, i) => l.kind === "same" && lines.slice(Math.max(0, i - 3), i + 4).every(x => x.kind === "same")
    ? (i === 0 || !lines.slice(Math.max(0, i - 4), i + 3).every(x => x.kind === "same") ? <span key={i} class="muted">  …</span> : null)
    : <span key={i} class={l.kind}>{sign[l.kind]}{l.text}</span>)}</pre>;
}
