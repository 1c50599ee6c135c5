// Runs: the list, and the run that is open beside it.
import type { Run } from "../api.gen";
import { query } from "../core/api";
import { usePages } from "../core/data";
import { params, segments, to } from "../core/router";
import { Empty, Id, State, Time, useTitle } from "../ui/basic";
import { Choice, Range, Search, since } from "../ui/filter";
import { Split, Table } from "../ui/table";

export function Runs() {
  useTitle("Runs");
  const q = params.value, id = segments.value[1];
  const rows = usePages<Run>("/workflow-runs" + query({ status: q.get("status"), definitionId: q.get("definition"), key: q.get("key"), since: since() }), { topics: ["runs"] });
  return <Split bar={<><h1>Runs</h1><Choice name="status" label="Status" options={["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]} /><Search name="key" label="Key" /><Range /></>}
    list={<Table label="Runs" rows={rows} id={r => r.id} href={r => to.run(r.id)} current={id} empty={<Empty title="No runs" command="holdfast runs start DEFINITION --input '{}'">Runs of workflow definitions appear here.</Empty>}
      columns={[
        { title: "Run", cell: r => <Id id={r.id} /> }, { title: "Status", cell: r => <State of={r.status} /> }, { title: "Definition", cell: r => r.definitionId, wide: true },
        { title: "Step", cell: r => r.currentStepName ?? "–" }, { title: "Key", cell: r => r.idempotencyKey ?? "–", wide: true }, { title: "Created", cell: r => <Time at={r.createdAt} />, wide: true }]} />}
    beside={id ? <div class="content">{id}</div> : undefined} />;
}
