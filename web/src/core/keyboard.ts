// Keys. A page binds keys while it is shown; nothing happens while a person types or a dialog is open.
import { useEffect } from "preact/hooks";

interface Binding { key: string; what: string; f: (e: KeyboardEvent) => void }
const bindings: Binding[][] = [];

/** useKeys binds keys, such as { j: ["next row", f] }. The last component that binds a key gets it. */
export function useKeys(all: Record<string, [what: string, f: (e: KeyboardEvent) => void]>): void {
  useEffect(() => {
    const mine = Object.entries(all).map(([key, [what, f]]) => ({ key, what, f }));
    bindings.push(mine);
    return () => void bindings.splice(bindings.indexOf(mine), 1);
  });
}

/** bound returns the keys that do something now, for the help. */
export function bound(): { key: string; what: string }[] {
  const seen = new Map<string, string>();
  for (const group of bindings) for (const b of group) seen.set(b.key, b.what);
  return [...seen].map(([key, what]) => ({ key, what }));
}

// A dialog that has just closed keeps the focus until the next frame: its fields take no keys then.
const typing = (e: Event) => { const at = e.target as HTMLElement; return !at.closest?.("dialog:not([open])") && at.closest?.("input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select, [contenteditable]"); };

addEventListener("keydown", e => {
  if (e.defaultPrevented || e.altKey) return;
  const command = e.metaKey || e.ctrlKey;
  const key = command ? "mod+" + e.key.toLowerCase() : e.key;
  if (!command && (typing(e) || document.querySelector("dialog[open]") || document.querySelector(":popover-open"))) return;
  if (e.key === "Enter" && (e.target as HTMLElement).closest?.("a, button")) return;
  for (let i = bindings.length - 1; i >= 0; i--) {
    const b = bindings[i].find(x => x.key === key);
    if (!b) continue;
    e.preventDefault();
    b.f(e);
    return;
  }
});
