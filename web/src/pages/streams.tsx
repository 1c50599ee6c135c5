import { Empty, useTitle } from "../ui/basic";

export function Streams() {
  useTitle("Streams");
  return <Empty title="Streams" />;
}
