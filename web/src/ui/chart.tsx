// Charts over time. All charts of a page share one crosshair.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { zone } from "../core/prefs";
import { absolute, number } from "../core/format";

export interface Series { label: string; tone: string; values: (number | null)[]; unit?: string }

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** lone returns the values that have none beside them: a line would not show them. */
function lone(u: uPlot, k: number): number[] | null {
  const all = u.data[k], found: number[] = [];
  for (let i = 0; i < all.length; i++) if (all[i] != null && all[i - 1] == null && all[i + 1] == null) found.push(i);
  return found.length ? found : null;
}

/** ticks writes the times of an axis, and the day below the first time and where it changes. */
function ticks(_u: uPlot, at: number[]): string[] {
  let day = "";
  return at.map(t => {
    const text = absolute(t * 1000, false), here = text.slice(0, 10), line = text.slice(11, 16) + (here === day ? "" : "\n" + here);
    day = here;
    return line;
  });
}

/** Chart draws series over times (in seconds). onRange is called when a range is selected. */
export function Chart({ times, series, height = 140, title, sync = "charts", onRange, stacked }: { times: number[]; series: Series[]; height?: number; title: string; sync?: string; onRange?: (from: number, to: number) => void; stacked?: boolean }) {
  const place = useRef<HTMLDivElement>(null), plot = useRef<uPlot | null>(null), legend = useRef<HTMLDivElement>(null);
  const shape = series.map(s => s.label + s.tone).join() + zone.value + height;
  const data = [times, ...series.map(s => s.values)] as uPlot.AlignedData;
  useEffect(() => {
    const el = place.current!;
    const axis = { stroke: () => css("--muted"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false }, font: "11px Geist" };
    const show = (u: uPlot) => {
      const i = u.cursor.idx;
      if (!legend.current) return;
      const texts = legend.current.querySelectorAll("b");
      series.forEach((s, k) => { const v = i === null || i === undefined ? undefined : (u.data[k + 1][i] as number | null); texts[k].textContent = v === undefined || v === null ? "" : number(Math.round(v * 100) / 100) + (s.unit ? " " + s.unit : ""); });
      const at = legend.current.querySelector("time");
      if (at) at.textContent = i === null || i === undefined ? "" : absolute((u.data[0][i] as number) * 1000, false);
    };
    const u = (plot.current = new uPlot({
      width: el.clientWidth || 300, height, legend: { show: false }, padding: [8, 18, 0, 0],
      tzDate: t => (zone.value === "utc" ? uPlot.tzDate(new Date(t * 1e3), "UTC") : new Date(t * 1e3)),
      cursor: { sync: { key: sync }, drag: { x: !!onRange, y: false, setScale: false }, points: { size: 6 } },
      scales: { y: { range: (_u, _min, max) => [0, Math.max(1, max * 1.1)] } },
      axes: [{ ...axis, size: 36, values: ticks }, { ...axis, size: 44, values: (_u, all) => all.map(v => (v >= 1e6 ? v / 1e6 + "M" : v >= 1e3 ? v / 1e3 + "k" : String(v))) }],
      series: [{}, ...series.map(s => ({ label: s.label, stroke: () => css("--" + s.tone), width: 1.5, fill: stacked ? () => css("--" + s.tone + "-bg") : undefined, points: { show: false, size: 5, filter: lone }, spanGaps: false }))],
      hooks: { setCursor: [show], setSelect: [u => { if (onRange && u.select.width > 4) onRange(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false); }] },
    }, data, el));
    const sized = new ResizeObserver(() => { if (el.clientWidth && el.clientWidth !== u.width) u.setSize({ width: el.clientWidth, height }); });
    sized.observe(el);
    const scheme = matchMedia("(prefers-color-scheme: dark)"), redraw = () => u.redraw();
    scheme.addEventListener("change", redraw);
    const themed = new MutationObserver(redraw);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => { sized.disconnect(); themed.disconnect(); scheme.removeEventListener("change", redraw); u.destroy(); plot.current = null; };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [times, ...series.map(s => s.values)]);
  const last = series.map(s => { const v = s.values.findLast(x => x !== null); return `${s.label} ${v ?? "none"}`; }).join(", ");
  return <figure role="group" aria-label={title}>
    <figcaption class="legend" ref={legend}><strong>{title}</strong>{series.map(s => <span key={s.label}><i style={{ "--series": `var(--${s.tone})` } as any} />{s.label} <b /></span>)}<time class="muted" /></figcaption>
    <div ref={place} role="img" aria-label={`${title}. Last values: ${last}`} />
  </figure>;
}
