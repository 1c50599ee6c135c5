import { Empty, useTitle } from "../ui/basic";

export function Handlers() {
  useTitle("Handlers");
  return <Empty title="Handlers" />;
}
