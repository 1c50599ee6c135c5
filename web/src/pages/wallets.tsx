import { Empty, useTitle } from "../ui/basic";

export function Wallets() {
  useTitle("Wallets");
  return <Empty title="Wallets" />;
}
