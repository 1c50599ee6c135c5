import { Empty, useTitle } from "../ui/basic";

export function Bulk() {
  useTitle("Bulk");
  return <Empty title="Bulk" />;
}
