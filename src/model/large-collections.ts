// Which collections are stored packed because they may be very large, and their indexes; knows no rows.
import type { Consumer } from "./consumer.ts";
import { type Credential, lookupOf } from "./credential.ts";
import type { CollectionName } from "./gateway-config.ts";

export const usernameOf = ({ username }: Consumer): string => username;
export const customIdOf = ({ custom_id: customId }: Consumer): string | null => customId;
export const ownerOf = ({ consumer_id: owner }: Credential): string => owner;

/** Their indexes beside the id. Each read of these collections decodes a new object. */
export const largeCollections = {
  consumers: [usernameOf, customIdOf],
  credentials: [lookupOf, ownerOf],
} as const;

export const isLarge = (name: CollectionName): name is keyof typeof largeCollections =>
  Object.hasOwn(largeCollections, name);
