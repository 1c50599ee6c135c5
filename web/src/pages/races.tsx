import { Empty, useTitle } from "../ui/basic";

export function Races() {
  useTitle("Races");
  return <Empty title="Races" />;
}
