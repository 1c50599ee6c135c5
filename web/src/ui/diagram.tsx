// Diagrams of lifecycles and of workflow definitions. The server lays them out; here they are drawn, moved and zoomed.
import { useEffect, useRef, useState } from "preact/hooks";
import type { DiagramEdge, DiagramLayout, DiagramNode } from "../api.gen";
import { number } from "../core/format";
import { Button } from "./basic";

export interface DiagramProps {
  layout: DiagramLayout;
  label: string;
  counts?: Record<string, number>;
  /** Nodes that are emphasized. */
  on?: string[];
  /** Tones of nodes, such as those of a run's steps. */
  tones?: Record<string, string>;
  href?: (node: DiagramNode) => string | undefined;
  height?: number;
  /** The smallest zoom that fits text to be read. A diagram that needs less is shown at the first emphasized node. */
  least?: number;
  /** Receives a function that moves a token along the edge between two nodes. */
  tokens?: (move: (from: string, to: string) => void) => void;
}

const path = (e: DiagramEdge) => e.points.map((p, i) => (i ? "L" : "M") + p.x + " " + p.y).join("");
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const motion = 140; // ms: motion only tells that a state has changed

export function Diagram(p: DiagramProps) {
  const svg = useRef<SVGSVGElement>(null), inner = useRef<SVGGElement>(null);
  const [view, set] = useState({ x: 0, y: 0, k: 0 });
  const { layout } = p;

  const fit = () => {
    const box = svg.current?.getBoundingClientRect();
    if (!box?.width) return;
    const k = Math.min(1.2, (box.width - 32) / layout.width, (box.height - 32) / layout.height);
    if (p.least === undefined || k >= p.least) { set({ k, x: (box.width - layout.width * k) / 2, y: (box.height - layout.height * k) / 2 }); return; }
    const at = layout.nodes.find(n => p.on?.includes(n.id)) ?? layout.nodes.find(n => n.initial) ?? layout.nodes[0], l = p.least;
    const place = (room: number, size: number, middle: number) => (size * l <= room ? (room - size * l) / 2 : Math.min(0, Math.max(room - size * l, room / 2 - middle * l)));
    set({ k: l, x: place(box.width, layout.width, at.x + at.width / 2), y: place(box.height, layout.height, at.y + at.height / 2) });
  };
  useEffect(() => {
    fit();
    const sized = new ResizeObserver(fit);
    sized.observe(svg.current!);
    return () => sized.disconnect();
  }, [layout.width, layout.height, p.least === undefined ? "" : p.on?.[0]]);

  const zoom = (by: number, at?: { x: number; y: number }) => set(v => {
    const box = svg.current!.getBoundingClientRect(), c = at ?? { x: box.width / 2, y: box.height / 2 }, k = Math.max(.2, Math.min(3, v.k * by));
    return { k, x: c.x - ((c.x - v.x) * k) / v.k, y: c.y - ((c.y - v.y) * k) / v.k };
  });
  const drag = (e: PointerEvent) => {
    if (e.button !== 0 || (e.target as Element).closest("a")) return;
    const el = e.currentTarget as Element;
    el.setPointerCapture(e.pointerId);
    const move = (m: PointerEvent) => set(v => ({ ...v, x: v.x + m.movementX, y: v.y + m.movementY }));
    el.addEventListener("pointermove", move as EventListener);
    el.addEventListener("pointerup", () => el.removeEventListener("pointermove", move as EventListener), { once: true });
  };
  const wheel = (e: WheelEvent) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const box = svg.current!.getBoundingClientRect();
    zoom(Math.exp(-e.deltaY / 300), { x: e.clientX - box.left, y: e.clientY - box.top });
  };
  const keys = (e: KeyboardEvent) => {
    const by: Record<string, [number, number]> = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    const d = by[e.key];
    if (d) { e.preventDefault(); set(v => ({ ...v, x: v.x + d[0], y: v.y + d[1] })); }
    else if (e.key === "+") zoom(1.2); else if (e.key === "-") zoom(1 / 1.2); else if (e.key === "0") fit();
  };

  useEffect(() => p.tokens?.((from, to) => {
    const g = inner.current;
    if (!g) return;
    const edge = [...g.querySelectorAll<SVGGElement>(".edge")].find(x => x.dataset.from === from && x.dataset.to === to);
    if (!edge) return;
    edge.classList.add("hot");
    setTimeout(() => edge.classList.remove("hot"), still() ? 600 : 900);
    if (still() || document.hidden || g.querySelectorAll(".token").length > 30) return;
    const line = edge.querySelector("path")!, length = line.getTotalLength();
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    dot.setAttribute("class", "token");
    dot.setAttribute("r", "5");
    g.append(dot);
    const begin = performance.now();
    const step = (t: number) => {
      const part = Math.min(1, (t - begin) / motion), at = line.getPointAtLength(part * length);
      dot.setAttribute("cx", String(at.x));
      dot.setAttribute("cy", String(at.y));
      part < 1 ? requestAnimationFrame(step) : setTimeout(() => dot.remove(), 350);
    };
    requestAnimationFrame(step);
  }), [layout]);

  return <div class="diagram" style={{ height: (p.height ?? 360) + "px" }} onPointerDown={drag} onWheel={wheel}>
    <svg ref={svg} class="canvas" role="group" aria-label={p.label} tabIndex={0} onKeyDown={keys}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="context-stroke" /></marker></defs>
      <g ref={inner} transform={`translate(${view.x} ${view.y}) scale(${view.k || 1})`} visibility={view.k ? undefined : "hidden"}>
        {layout.edges.map((e, i) => <g key={i} class={"edge " + e.kind} data-from={e.from} data-to={e.to}><path d={path(e)} marker-end="url(#arrow)" />{e.label && e.labelAt && <text x={e.labelAt.x} y={e.labelAt.y - 4}>{e.label}</text>}</g>)}
        {layout.nodes.map(n => <Node key={n.id} n={n} count={p.counts?.[n.id]} on={p.on?.includes(n.id)} tone={p.tones?.[n.id]} href={p.href?.(n)} />)}
      </g>
    </svg>
    <div class="zoom"><Button class="icon-only small" aria-label="Zoom in" icon="plus" onClick={() => zoom(1.25)} /><Button class="icon-only small" aria-label="Zoom out" icon="minus" onClick={() => zoom(.8)} /><Button class="small" onClick={fit}>Fit</Button></div>
  </div>;
}

function Node({ n, count, on, tone, href }: { n: DiagramNode; count?: number; on?: boolean; tone?: string; href?: string }) {
  const text = count === undefined ? n.height / 2 : n.height / 2 - 8;
  const body = <>
    <rect width={n.width} height={n.height} rx={n.kind === "claim" || n.initial || n.final ? n.height / 2.6 : 6} style={tone ? { fill: `var(--${tone}-bg)`, stroke: `var(--${tone})` } : undefined} />
    <text x={n.width / 2} y={text}>{n.label}</text>
    {count !== undefined && <text class="count-text" x={n.width / 2} y={n.height / 2 + 9}>{number(count)}</text>}
    <title>{n.id + (count === undefined ? "" : `: ${number(count)}`)}</title>
  </>;
  const c = `node ${n.kind}${n.final ? " final" : ""}${on ? " on" : ""}`;
  return <g transform={`translate(${n.x} ${n.y})`} class={c}>{href ? <a href={href}>{body}</a> : body}</g>;
}
