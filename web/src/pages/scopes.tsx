import { Empty, useTitle } from "../ui/basic";

export function Scopes() {
  useTitle("Scopes");
  return <Empty title="Scopes" />;
}
