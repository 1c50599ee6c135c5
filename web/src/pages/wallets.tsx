// Wallets: balances, and the ledger like a bank statement.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Audit, LedgerEntry, Wallet } from "../api.gen";
import { get, may, mayCall, p, Refused } from "../core/api";
import { useGet, usePages } from "../core/data";
import { absolute, number, plural, relative, sentence } from "../core/format";
import { useKeys } from "../core/keyboard";
import { topic } from "../core/live";
import { go, segments, to } from "../core/router";
import { Button, CopyButton, Empty, Failure, Facts, Icon, Loading, Notice, Panel, State, useTitle } from "../ui/basic";
import { Act, ask, curlEntry, Menu } from "../ui/dialog";
import { offer } from "../ui/palette";
import { Detail } from "../ui/shell";
import { Split, Table } from "../ui/table";
import { Shown } from "./work-part";

export function Wallets() {
  useTitle("Wallets");
  const id = segments.value[1], [listed, set] = useState<string[]>([]);
  const rows = usePages<Wallet>("/wallets", { topics: listed.map(w => topic("wallet", w)), when: m => !!m.state?.wallets || m.reset });
  const first = (rows.value.value ?? []).slice(0, 50).map(w => w.id);
  useEffect(() => set(first), [first.join("\n")]); // there is no topic of all wallets
  useEffect(() => offer([...(mayCall("PUT", "/wallets/x") ? [{ label: "Create a wallet", run: put }] : []), ...(id && may("POST /wallets/{id}/credit") ? [{ label: `Credit wallet ${id}`, run: () => credit(id) }] : [])]), [id]);
  return <Split bar={<><h1>Wallets</h1><Shown rows={rows} one="wallet" /><span class="grow" /><AuditButton id="*" label="Audit all" /><Act method="PUT" path="/wallets/x" icon="plus" onClick={put}>Create a wallet</Act><Menu label="More" entries={[curlEntry("GET", "/wallets"), { ...curlEntry("GET", "/wallets/*/audit"), label: "Copy the audit as curl" }]} /></>}
    list={<Table label="Wallets" rows={rows} id={w => w.id} href={w => to.wallet(w.id)} current={id} empty={<Empty title="No wallets" command={`holdfast wallet put acme`}>A wallet holds the points that batches are paid with.</Empty>}
      columns={[{ title: "Wallet", cell: w => w.id }, { title: "Balance", num: true, cell: w => <Points n={w.balance} /> }, { title: "Below zero", cell: w => w.allowNegative ? "permitted" : <span class="muted">refused</span>, wide: true }]} />}
    beside={id ? <WalletDetail key={id} id={id} /> : undefined} />;
}

const Points = ({ n }: { n: number }) => <span class={n < 0 ? "tone tone-danger" : ""}>{n < 0 ? "−" + number(-n) : number(n)}</span>;

const put = () => ask({ title: "Create a wallet", label: "Create", method: "PUT", path: v => p`/wallets/${v.id ?? "ID"}`, fields: [{ name: "id", label: "Id", required: true, placeholder: "acme" }, { name: "allowNegative", label: "Its balance may be negative", kind: "checkbox" }],
  send: v => ({ allowNegative: v.allowNegative }), said: "Created.", done: (w: Wallet) => go(to.wallet(w.id)) });

const credit = (id: string) => ask({ title: `Credit wallet ${id}`, label: "Credit", method: "POST", path: p`/wallets/${id}/credit`,
  fields: [{ name: "points", label: "Points", kind: "number", required: true }, { name: "reference", label: "Reference", required: true, placeholder: "payment-17", help: "What the credit is for, such as payment-17. Crediting again with the same reference adds nothing." }],
  send: v => v, said: (w: Wallet) => `The balance is now ${number(w.balance)}.` });

/** AuditButton compares balances with their ledgers, and keeps the result on the page. */
function AuditButton({ id, label, into }: { id: string; label: string; into?: (result: ComponentChildren) => void }) {
  const [busy, set] = useState(false), [result, show] = useState<ComponentChildren>();
  const run = async () => {
    set(true);
    let said: ComponentChildren;
    try {
      const a = await get<Audit>(p`/wallets/${id}/audit`);
      said = a.wrong.length === 0
        ? <Notice tone="ok" icon="check"><p><strong>{id === "*" ? `${plural(a.wallets, "wallet")}: ` : ""}{plural(a.entries, "entry adds", "entries add")} up to the {a.wallets === 1 || id !== "*" ? "balance" : "balances"}.</strong> Audited at {absolute(Date.now(), false)}.</p></Notice>
        : <Notice tone="danger" icon="x"><p><strong>{plural(a.wrong.length, "discrepancy", "discrepancies")}</strong></p><ul>{a.wrong.map((w, i) => <li key={i}><p><a class="link" href={to.wallet(w.wallet)}>{w.wallet}</a>, entry {w.id}: {w.message}</p></li>)}</ul></Notice>;
    } catch (e) { said = <Failure error={e as Refused} retry={() => void run()} />; }
    set(false);
    into ? into(said) : show(said);
  };
  return <><Button icon="check" disabled={busy} onClick={() => void run()}>{busy ? "Auditing…" : label}</Button>{result && <div class="audit-result">{result}</div>}</>;
}

function WalletDetail({ id }: { id: string }) {
  const base = p`/wallets/${id}`, follow = { topics: [topic("wallet", id)], when: (m: { reset: boolean; state?: { wallets?: Record<string, unknown> } }) => m.reset || !!(m.state?.wallets && id in m.state.wallets) };
  const read = useGet<Wallet>(base, follow), rows = usePages<LedgerEntry>(base + "/ledger?backward=true", follow), [audited, show] = useState<ComponentChildren>(), w = read.value.value;
  useTitle("Wallet " + id);
  useKeys(may("POST /wallets/{id}/credit") ? { c: ["credit the wallet", () => credit(id)] } : {});
  if (!w) return <Detail title={id} close="/wallets">{read.error.value ? <Failure error={read.error.value} retry={read.reload} /> : <Loading />}</Detail>;
  const allow = () => ask({ title: w.allowNegative ? "Refuse a negative balance" : "Permit a negative balance", label: "Change", danger: true, touches: 1, method: "PUT", path: base, body: <p>Batches that wallet <code>{id}</code> pays for {w.allowNegative ? "pause when it has too few points." : "continue even if its balance falls below zero."}</p>, send: () => ({ allowNegative: !w.allowNegative }), said: "Changed.", done: read.reload });
  return <Detail title={id} close="/wallets" actions={<>
    <Act method="POST" path={base + "/credit"} class="primary" icon="plus" onClick={() => credit(id)}>Credit</Act><AuditButton id={id} label="Audit" into={show} />
    <Menu label="More actions" entries={[{ label: w.allowNegative ? "Refuse a negative balance" : "Permit a negative balance", hidden: !mayCall("PUT", base), run: allow }, curlEntry("GET", base + "/ledger?backward=true"), { ...curlEntry("GET", base + "/audit"), label: "Copy the audit as curl" }]} /></>}>
    {read.error.value && <Notice tone="danger"><Failure error={read.error.value} retry={read.reload} /></Notice>}
    <div><p class="muted">Balance</p><p class="balance"><Points n={w.balance} /> <span class="muted">points</span></p></div>
    {audited}
    <Facts of={[["Below zero", w.allowNegative ? "permitted" : "refused: batches pause when the wallet cannot pay"], ["Batches", <a class="link" href={"/batches?wallet=" + encodeURIComponent(id)}>Paid from this wallet</a>]]} />
    <div class="ledger"><Panel title="Ledger" flush actions={<Shown rows={rows} one="entry" many="entries" />}>
      <Table label="Ledger" rows={rows} id={l => String(l.id)} keys={false} height={(rows.value.value?.length ?? 0) > 12 ? "60vh" : "auto"} empty={<Empty title="No entries" command={`holdfast wallet credit ${id} 500 --reference payment-17`}>Credits, charges and refunds appear here.</Empty>} columns={[
        { title: "Date", cell: l => <time dateTime={l.at ?? ""} title={l.at ? relative(l.at) : ""}><span class="hide-small">{absolute(l.at, false).slice(0, 5)}</span>{absolute(l.at, false).slice(5, 16)}<span class="hide-small">{absolute(l.at, false).slice(16, 19)}</span></time> },
        { title: "What", cell: l => <State of={sentence(l.reason)} tone={l.delta < 0 ? "neutral" : "ok"} icon={l.delta < 0 ? "minus" : l.reason === "credit" ? "plus" : "undo"} /> },
        { title: "Reference", class: "rest", cell: l => <Reference of={l.reference} /> },
        { title: "Amount", num: true, cell: l => <span class={l.delta > 0 ? "amount-in" : ""}>{l.delta > 0 ? "+" : "−"}{number(Math.abs(l.delta))}</span> },
        { title: "Balance", num: true, cell: l => <Points n={l.balance} /> }, { title: "#", num: true, wide: true, cell: l => <span class="muted">{l.id}</span> }]} />
    </Panel></div>
  </Detail>;
}

/** Reference links an entry to the batch that made it: its reference is $batch/ID/charge/KEY. */
function Reference({ of }: { of: string }) {
  const m = /^\$batch\/(.+)\/(charge|refund|return)\/(.+)$/.exec(of);
  return <span class="id" title={of}>{m ? <a class="link" href={to.batch(m[1])}><Icon name="box" /> {m[1].length > 14 ? m[1].slice(0, 4) + "…" + m[1].slice(-6) : m[1]}, item {m[3]}</a> : of}<CopyButton text={of} what="reference" /></span>;
}
