import { Empty, useTitle } from "../ui/basic";

export function Batches() {
  useTitle("Batches");
  return <Empty title="Batches" />;
}
