import { Empty, useTitle } from "../ui/basic";

export function Webhooks() {
  useTitle("Webhooks");
  return <Empty title="Webhooks" />;
}
