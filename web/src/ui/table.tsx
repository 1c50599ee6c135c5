// Lists: rows in a window, with keys and selection, and the row that is open beside them.
import { type Signal, useSignal } from "@preact/signals";
import { type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Rows } from "../core/data";
import { useKeys } from "../core/keyboard";
import { number, plural } from "../core/format";
import { go } from "../core/router";
import { Button, Empty, Failure, Loading, Notice } from "./basic";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** Figures are aligned to the right. */
  num?: boolean;
  /** Left out while another row is open beside the list, and on small screens. */
  wide?: boolean;
  class?: string;
}

export interface TableProps<T> {
  rows: Rows<T> & { stale?: Signal<boolean> };
  columns: Column<T>[];
  id: (row: T) => string;
  /** The address of a row. */
  href?: (row: T) => string;
  /** The row that is open beside the list. */
  current?: string;
  empty: ComponentChildren;
  /** What a person can do with selected rows; without it there is no selection. */
  selection?: (ids: string[], clear: () => void) => ComponentChildren;
  label: string;
  /** Whether j, k, Enter and x act on this table; false for a table within the details of a row. */
  keys?: boolean;
  /** Height of the rows' window if the table does not fill its place, such as "320px". */
  height?: string;
}

const rowHeight = 32, over = 12;

/** Table shows a list. Only the rows in view are in the document. */
export function Table<T>(p: TableProps<T>) {
  const { rows, columns } = p;
  const scroller = useRef<HTMLDivElement>(null);
  const first = useSignal(0), height = useSignal(800), cursor = useSignal(-1), selected = useSignal<ReadonlySet<string>>(new Set());
  const all = rows.value.value, skipped = rows.dropped.value;
  const narrow = p.current !== undefined;
  // Another list: what was selected in the last one must not be acted on.
  useEffect(() => { if (!all) { selected.value = new Set(); cursor.value = -1; } }, [!all]);
  const shown = columns.filter(c => !(c.wide && narrow));

  useLayoutEffect(() => {
    const el = scroller.current;
    if (!el) return;
    const look = () => { first.value = Math.floor(el.scrollTop / rowHeight); height.value = el.clientHeight; };
    look();
    const sized = new ResizeObserver(look);
    sized.observe(el);
    el.addEventListener("scroll", look, { passive: true });
    return () => { sized.disconnect(); el.removeEventListener("scroll", look); };
  }, [all === undefined]);

  const total = skipped + (all?.length ?? 0);
  const visible = Math.min(180, Math.ceil(height.value / rowHeight) + 2 * over);
  const from = Math.max(skipped, Math.min(first.value - over, Math.max(skipped, total - visible))), until = Math.min(total, from + visible);
  useEffect(() => { if (all && rows.more.value && until >= total - over) rows.loadMore(); });

  const at = (i: number): T | undefined => all?.[i - skipped];
  const move = (step: number) => {
    if (!all?.length) return;
    const start = cursor.value >= 0 ? cursor.value : all.findIndex(r => p.id(r) === p.current) + skipped - (step > 0 && p.current === undefined ? 0 : 0);
    cursor.value = Math.max(skipped, Math.min(total - 1, (cursor.value < 0 && p.current === undefined ? (step > 0 ? skipped - 1 : skipped) : start) + step));
    const el = scroller.current!, top = cursor.value * rowHeight;
    if (top < el.scrollTop + rowHeight) el.scrollTop = top - rowHeight;
    else if (top + 2 * rowHeight > el.scrollTop + el.clientHeight) el.scrollTop = top + 2 * rowHeight - el.clientHeight;
    const row = at(cursor.value);
    if (row && narrow && p.href) go(p.href(row) + location.search, true);
  };
  const pick = (id: string) => { const s = new Set(selected.value); s.delete(id) || s.add(id); selected.value = s; };
  useKeys(p.keys === false ? {} : {
    j: ["next row", () => move(1)], k: ["previous row", () => move(-1)],
    Enter: ["open the row", () => { const row = at(cursor.value); if (row && p.href) go(p.href(row) + location.search); }],
    ...(p.selection ? { x: ["select the row", () => { const row = at(cursor.value); if (row) pick(p.id(row)); }] } : {}),
  });

  if (!all) return rows.error.value ? <Failure error={rows.error.value} retry={rows.reload} /> : <Loading />;
  const listed = new Set(all.map(p.id)), ids = [...selected.value].filter(id => listed.has(id));
  const clear = () => (selected.value = new Set());
  return <div class="table">
    {rows.error.value && <Notice tone="danger"><Failure error={rows.error.value} retry={rows.reload} /></Notice>}
    {rows.stale?.value && <Notice tone="active" icon="refresh"><p>There are newer rows. <button type="button" class="bare link" onClick={() => { scroller.current!.scrollTop = 0; rows.reload(); }}>Show them</button></p></Notice>}
    {all.length === 0 ? (rows.more.value ? <Loading /> : p.empty) : <div class={p.height ? "scroller bounded" : "scroller"} ref={scroller} tabIndex={0} role="region" aria-label={p.label} style={p.height ? { "--height": p.height } as any : undefined}>
      <table aria-rowcount={rows.more.value ? -1 : total + 1}>
        <thead><tr>{p.selection && <th class="check"><span class="hidden">Selected</span></th>}{shown.map(c => <th key={c.title} scope="col" class={(c.num ? "num" : "") + (c.wide ? " wide-cell" : "")}>{c.title}</th>)}</tr></thead>
        <tbody>
          {from > 0 && <tr aria-hidden="true" style={{ height: from * rowHeight + "px" }}><td colSpan={99} style={{ height: "auto" }}>{from <= skipped && skipped > 0 ? <Button class="small" onClick={() => { scroller.current!.scrollTop = 0; rows.reload(); }}>Back to the first rows</Button> : null}</td></tr>}
          {Array.from({ length: Math.max(0, until - from) }, (_, n) => {
            const i = from + n, row = at(i);
            if (row === undefined) return null;
            const id = p.id(row), href = p.href?.(row);
            const open = (e: MouseEvent) => { if ((e.target as Element).closest("a, button, input")) return; if (href) { cursor.value = i; go(href + location.search); } };
            return <tr key={id} class={(href ? "link-row" : "") + (cursor.value === i ? " cursor" : "")} aria-selected={id === p.current || selected.value.has(id)} onClick={open}>
              {p.selection && <td class="check"><input type="checkbox" aria-label={"select " + id} checked={selected.value.has(id)} onChange={() => pick(id)} /></td>}
              {shown.map((c, k) => <td key={c.title} class={(c.num ? "num " : "") + (c.wide ? "wide-cell " : "") + (c.class ?? "")}>{k === 0 && href ? <a href={href + location.search}>{c.cell(row)}</a> : c.cell(row)}</td>)}
            </tr>;
          })}
          {until < total && <tr aria-hidden="true" style={{ height: (total - until) * rowHeight + "px" }}><td colSpan={99} style={{ height: "auto" }} /></tr>}
        </tbody>
      </table>
    </div>}
    {ids.length > 0 && p.selection && <div class="selection" role="toolbar" aria-label="Selected rows"><span>{plural(ids.length, "row")} selected</span>{p.selection(ids, clear)}<span class="grow" /><Button class="quiet" onClick={clear}>Clear</Button></div>}
  </div>;
}

/** Split is a list with the row that is open beside it. */
export function Split({ bar, list, beside }: { bar: ComponentChildren; list: ComponentChildren; beside?: ComponentChildren }) {
  return <div class={beside ? "split open" : "split"}>
    <div class="list">{bar && <div class="bar">{bar}</div>}{list}</div>
    {beside && <div class="beside" tabIndex={0} role="region" aria-label="Details">{beside}</div>}
  </div>;
}

/** SimpleTable shows a short list whole. */
export function SimpleTable<T>({ of, columns, id, empty, href }: { of: T[]; columns: Column<T>[]; id: (row: T, i: number) => string; empty?: ComponentChildren; href?: (row: T) => string }) {
  if (of.length === 0) return <>{empty ?? <Empty title="Nothing here" />}</>;
  return <div class="scroller" tabIndex={0}><table>
    <thead><tr>{columns.map(c => <th key={c.title} scope="col" class={c.num ? "num" : ""}>{c.title}</th>)}</tr></thead>
    <tbody>{of.map((row, i) => <tr key={id(row, i)} class={href ? "link-row" : ""} onClick={href ? e => { if (!(e.target as Element).closest("a, button, input")) go(href(row)); } : undefined}>{columns.map((c, k) => <td key={c.title} class={(c.num ? "num " : "") + (c.class ?? "")}>{k === 0 && href ? <a href={href(row)}>{c.cell(row)}</a> : c.cell(row)}</td>)}</tr>)}</tbody>
  </table></div>;
}

export const Count = ({ n, capped }: { n: number; capped?: boolean }) => <>{number(n)}{capped ? "+" : ""}</>;
