// All pages but the inbox, which is shown first: the browser reads them after it.
import type { ComponentType } from "preact";
import { Approvals } from "./approvals";
import { Audit } from "./audit";
import { Batches } from "./batches";
import { Bulk } from "./bulk";
import { Definitions } from "./definitions";
import { Handlers } from "./handlers";
import { Keys } from "./keys";
import { Lifecycles } from "./lifecycles";
import { Nodes } from "./nodes";
import { Operations } from "./operations";
import { Overview } from "./overview";
import { Races } from "./races";
import { Reactions } from "./reactions";
import { Requests } from "./requests";
import { Runs } from "./runs";
import { Scopes } from "./scopes";
import { Secrets } from "./secrets";
import { Streams } from "./streams";
import { Wallets } from "./wallets";
import { Webhooks } from "./webhooks";

/** The pages by the first segment of their paths. */
export const pages: Record<string, ComponentType> = {
  overview: Overview, lifecycles: Lifecycles, runs: Runs, definitions: Definitions, approvals: Approvals, batches: Batches, wallets: Wallets, streams: Streams, reactions: Reactions, scopes: Scopes, operations: Operations, races: Races, bulk: Bulk, handlers: Handlers, webhooks: Webhooks, nodes: Nodes, keys: Keys, secrets: Secrets, audit: Audit, requests: Requests,
};
