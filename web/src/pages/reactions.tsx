import { Empty, useTitle } from "../ui/basic";

export function Reactions() {
  useTitle("Reactions");
  return <Empty title="Reactions" />;
}
