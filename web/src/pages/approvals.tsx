import { Empty, useTitle } from "../ui/basic";

export function Approvals() {
  useTitle("Approvals");
  return <Empty title="Approvals" />;
}
