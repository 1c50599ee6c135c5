// Filters are in the address, so that a filtered list has a link.
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../core/keyboard";
import { params, setParams } from "../core/router";

/** Choice is a filter with a few values. */
export function Choice({ name, label, options }: { name: string; label: string; options: (string | { value: string; label: string })[] }) {
  const here = params.value.get(name) ?? "", known = !here || options.some(o => (typeof o === "string" ? o : o.value) === here);
  return <select aria-label={label} value={here} onChange={e => setParams({ [name]: e.currentTarget.value })}>
    <option value="">{label}: all</option>
    {!known && <option value={here}>{here}</option>}
    {options.map(o => { const v = typeof o === "string" ? { value: o, label: o.toLowerCase() } : o; return <option value={v.value} key={v.value}>{v.label}</option>; })}
  </select>;
}

/** Search is a filter with a text; "/" moves to it. */
export function Search({ name, label, hint }: { name: string; label: string; hint?: string }) {
  const input = useRef<HTMLInputElement>(null), here = params.value.get(name) ?? "";
  const [text, set] = useState(here);
  useEffect(() => set(here), [here]);
  useEffect(() => {
    if (text === here) return;
    const timer = setTimeout(() => setParams({ [name]: text }), 250);
    return () => clearTimeout(timer);
  }, [text]);
  useKeys({ "/": ["filter", () => input.current?.focus()] });
  return <input ref={input} type="search" aria-label={label} title={hint} placeholder={label} value={text} onInput={e => set(e.currentTarget.value)} onKeyDown={e => { if (e.key === "Escape") { set(""); input.current?.blur(); } }} />;
}

const ranges: [string, string, number][] = [["1h", "last hour", 3600e3], ["24h", "last day", 86400e3], ["7d", "last 7 days", 604800e3], ["30d", "last 30 days", 2592000e3]];

/** Range is a filter by time. */
export function Range({ name = "range", label = "Time" }: { name?: string; label?: string }) {
  return <Choice name={name} label={label} options={ranges.map(([value, l]) => ({ value, label: l }))} />;
}

const chosen = new Map<string, { range: string; since: string }>();

/** since is the beginning of the range. It stays the same until another range is chosen, so that a list does not begin again by itself. */
export function since(name = "range"): string | undefined {
  const range = params.value.get(name) ?? "", r = ranges.find(x => x[0] === range);
  if (!r) { chosen.delete(name); return undefined; }
  const known = chosen.get(name);
  if (known?.range === range) return known.since;
  const since = new Date(Date.now() - r[2]).toISOString();
  chosen.set(name, { range, since });
  return since;
}
