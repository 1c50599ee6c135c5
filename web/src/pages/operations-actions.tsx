// Bulk actions on operations.
import type { Field } from "../ui/dialog";
import { startBulk } from "./operate-part";

/** How an operation ends. */
export const outcomes: Field = { name: "outcome", label: "Outcome", kind: "select", options: [{ value: "", label: "continue with the answers" }, { value: "success", label: "end with success" }, { value: "failure", label: "end with failure" }, { value: "invalid", label: "end as invalid" }] };

/** Bulk actions on operations, by ids or by a filter. */
export function bulk(kind: "release" | "withdraw" | "resolve", ids?: string[], done?: () => void) {
  const scope: Field[] = ids ? [] : [{ name: "lifecycle", label: "Lifecycle", help: "Empty: operations of all lifecycles." }];
  const of = (v: Record<string, any>) => (ids ? { ids } : { filter: v.lifecycle ? { lifecycle: v.lifecycle } : {} });
  if (kind === "resolve") {
    startBulk({ title: "Resolve uncertain operations", label: "Resolve", danger: true, done, body: "One answer for every effect whose outcome is unknown. Look into the other system first.",
      fields: [...scope, { name: "happened", label: "The unknown effects", kind: "select", required: true, options: [{ value: "", label: "choose" }, { value: "false", label: "did not happen" }, { value: "true", label: "happened" }] }, outcomes],
      said: b => <p>The unknown effects <strong>{b.happened ? "happened" : "did not happen"}</strong>; outcome: {b.outcome ?? "none, continue"}.</p>,
      make: v => ({ action: "operation.resolve", ...of(v), happened: v.happened === "true", outcome: v.outcome }) });
    return;
  }
  startBulk({ title: kind === "release" ? "Release held operations" : "Withdraw due operations", label: kind === "release" ? "Release" : "Withdraw", danger: true, done,
    body: kind === "release" ? "Their holders can write nothing more. An operation is not released if one of its effects happened or may have happened." : "Their entities return to the status in which the step was fired.",
    fields: [...scope, { name: "reason", label: "Reason", help: "The audit log keeps it." }], make: v => ({ action: `operation.${kind}`, ...of(v), reason: v.reason }) });
}
