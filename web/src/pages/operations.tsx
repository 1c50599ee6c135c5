import { Empty, useTitle } from "../ui/basic";

export function Operations() {
  useTitle("Operations");
  return <Empty title="Operations" />;
}
