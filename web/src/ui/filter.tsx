// Filters are in the address, so that a filtered list has a link.
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../core/keyboard";
import { params, setParams } from "../core/router";

/** Choice is a filter with a few values. */
export function Choice({ name, label, options }: { name: string; label: string; options: (string | { value: string; label: string })[] }) {
  return <select aria-label={label} value={params.value.get(name) ?? ""} onChange={e => setParams({ [name]: e.currentTarget.value })}>
    <option value="">{label}: all</option>
    {options.map(o => { const v = typeof o === "string" ? { value: o, label: o.toLowerCase() } : o; return <option value={v.value} key={v.value}>{v.label}</option>; })}
  </select>;
}

/** Search is a filter with a text; "/" moves to it. */
export function Search({ name, label }: { name: string; label: string }) {
  const input = useRef<HTMLInputElement>(null), here = params.value.get(name) ?? "";
  const [text, set] = useState(here);
  useEffect(() => set(here), [here]);
  useEffect(() => {
    if (text === here) return;
    const timer = setTimeout(() => setParams({ [name]: text }), 250);
    return () => clearTimeout(timer);
  }, [text]);
  useKeys({ "/": ["filter", () => input.current?.focus()] });
  return <input ref={input} type="search" aria-label={label} placeholder={label} value={text} onInput={e => set(e.currentTarget.value)} onKeyDown={e => { if (e.key === "Escape") { set(""); input.current?.blur(); } }} />;
}

const ranges: [string, string, number][] = [["1h", "last hour", 3600e3], ["24h", "last day", 86400e3], ["7d", "last 7 days", 604800e3], ["30d", "last 30 days", 2592000e3]];

/** Range is a filter by time. since() turns its value into a time, to the minute, so that the address of a request does not change all the time. */
export function Range({ name = "range", label = "Time" }: { name?: string; label?: string }) {
  return <Choice name={name} label={label} options={ranges.map(([value, l]) => ({ value, label: l }))} />;
}

export function since(name = "range"): string | undefined {
  const r = ranges.find(x => x[0] === params.value.get(name));
  return r ? new Date(Math.floor((Date.now() - r[2]) / 60000) * 60000).toISOString() : undefined;
}
