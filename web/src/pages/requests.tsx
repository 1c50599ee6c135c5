import { Empty, useTitle } from "../ui/basic";

export function Requests() {
  useTitle("Requests");
  return <Empty title="Requests" />;
}
