// How values are written.
import { signal } from "@preact/signals";
import { now } from "./api";
import { zone } from "./prefs";

/** tick changes every second while the page is visible; relative times depend on it. */
export const tick = signal(0);
setInterval(() => document.hidden || tick.value++, 1000);

/** absolute writes a time with its zone, to the millisecond if exact. */
export function absolute(t: string | number | null | undefined, exact = true): string {
  if (t === null || t === undefined || t === "") return "–";
  const d = new Date(t);
  const utc = zone.value === "utc";
  const n = (v: number, w = 2) => String(v).padStart(w, "0");
  const day = utc ? `${d.getUTCFullYear()}-${n(d.getUTCMonth() + 1)}-${n(d.getUTCDate())}` : `${d.getFullYear()}-${n(d.getMonth() + 1)}-${n(d.getDate())}`;
  const time = utc ? `${n(d.getUTCHours())}:${n(d.getUTCMinutes())}:${n(d.getUTCSeconds())}` : `${n(d.getHours())}:${n(d.getMinutes())}:${n(d.getSeconds())}`;
  const ms = exact ? "." + n(utc ? d.getUTCMilliseconds() : d.getMilliseconds(), 3) : "";
  return `${day} ${time}${ms} ${utc ? "UTC" : offset(d)}`;
}

function offset(d: Date): string {
  const m = -d.getTimezoneOffset();
  if (m === 0) return "UTC";
  const a = Math.abs(m);
  return `${m < 0 ? "−" : "+"}${String(Math.floor(a / 60)).padStart(2, "0")}:${String(a % 60).padStart(2, "0")}`;
}

/** clockTime writes the time of day to the millisecond. */
export function clockTime(t: string | number): string {
  return absolute(t).slice(11, 23);
}

/** relative writes a time as its distance from now: "3 min ago", "in 40 s". */
export function relative(t: string | number): string {
  tick.value;
  const ms = new Date(t).getTime() - now();
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? "in " + duration(ms) : duration(-ms) + " ago";
}

/** duration writes a length of time with its largest unit, from 90 s on with two. */
export function duration(ms: number): string {
  if (ms < 1) return "0 ms";
  if (ms < 1000) return Math.round(ms) + " ms";
  const s = ms / 1000;
  if (s < 10) return s.toFixed(1).replace(/\.0$/, "") + " s";
  if (s < 90) return Math.round(s) + " s";
  const m = Math.floor(s / 60);
  if (m < 60) return m + " min";
  const h = Math.floor(m / 60);
  if (h < 24) return h + " h" + (m % 60 ? ` ${m % 60} min` : "");
  const d = Math.floor(h / 24);
  return d + " d" + (h % 24 && d < 10 ? ` ${h % 24} h` : "");
}

/** number writes a number with separators, and at most three decimals. Intl would load its tables before the first page is drawn. */
export function number(n: number | null | undefined): string {
  if (n === null || n === undefined) return "–";
  const [whole, decimals] = String(Math.round(n * 1000) / 1000).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (decimals ? "." + decimals : "");
}

/** short shortens an id in the middle. */
export function short(id: string, most = 18): string {
  return id.length <= most ? id : id.slice(0, most - 7) + "…" + id.slice(-6);
}

/** plural writes a count with its noun. */
export const plural = (n: number, one: string, many = one + "s") => `${number(n)} ${n === 1 ? one : many}`;

/** words turns a name such as uncertainOperation into "uncertain operation". */
export const words = (name: string) => name.replace(/([A-Z])/g, " $1").replace(/_/g, " ").trim().toLowerCase();

/** sentence begins a text with a capital letter. */
export const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
