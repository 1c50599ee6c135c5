import { Empty, useTitle } from "../ui/basic";

export function Definitions() {
  useTitle("Definitions");
  return <Empty title="Definitions" />;
}
