import { Empty, useTitle } from "../ui/basic";

export function Overview() {
  useTitle("Overview");
  return <Empty title="Overview" />;
}
