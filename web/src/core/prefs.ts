// Preferences of this browser.
import { effect, signal } from "@preact/signals";

function stored<T extends string>(name: string, values: readonly T[]) {
  const was = localStorage.getItem("holdfast." + name) as T;
  const s = signal<T>(values.includes(was) ? was : values[0]);
  effect(() => { if (s.value !== (localStorage.getItem("holdfast." + name) ?? values[0])) localStorage.setItem("holdfast." + name, s.value); });
  return s;
}

export const theme = stored("theme", ["system", "light", "dark"] as const);
export const zone = stored("zone", ["local", "utc"] as const);

effect(() => {
  const root = document.documentElement;
  theme.value === "system" ? root.removeAttribute("data-theme") : root.setAttribute("data-theme", theme.value);
});
