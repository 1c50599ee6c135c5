import { Empty, useTitle } from "../ui/basic";

export function Nodes() {
  useTitle("Nodes");
  return <Empty title="Nodes" />;
}
