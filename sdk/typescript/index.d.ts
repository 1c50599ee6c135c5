export * from "./client.js";
export * from "./errors.js";
export * from "./worker.js";
export * from "./webhook.js";
export type * from "./api.js";
