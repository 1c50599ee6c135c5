// Prints the version of each event "paid" of a feed, and "open" for each connection.
import { createRequire } from "node:module";
const { EventSource } = createRequire(process.env.NODE_MODULES)("eventsource");

const source = new EventSource(process.env.FEED);
source.onopen = () => console.log("open");
source.addEventListener("paid", (e) => console.log(JSON.parse(e.data).version));
setInterval(() => {}, 60_000); // the pause before a reconnect does not keep the process alive
