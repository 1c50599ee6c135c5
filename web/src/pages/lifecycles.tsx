import { Empty, useTitle } from "../ui/basic";

export function Lifecycles() {
  useTitle("Lifecycles");
  return <Empty title="Lifecycles" />;
}
