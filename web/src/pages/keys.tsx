import { Empty, useTitle } from "../ui/basic";

export function Keys() {
  useTitle("Keys");
  return <Empty title="Keys" />;
}
