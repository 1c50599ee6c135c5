export { Client } from "./client.js";
export { HoldfastError } from "./errors.js";
export { Invalid, NonRetryable, NotDone, OutcomeUnknown, Snooze, Worker } from "./worker.js";
export { verify } from "./webhook.js";
