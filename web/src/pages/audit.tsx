import { Empty, useTitle } from "../ui/basic";

export function Audit() {
  useTitle("Audit");
  return <Empty title="Audit" />;
}
