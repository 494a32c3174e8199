// Which collections may hold so many objects that they are kept packed, and by what their objects are found; knows no rows.
import type { Consumer } from "./consumer.ts";
import { type Credential, lookupOf } from "./credential.ts";
import type { CollectionName } from "./gateway-config.ts";

export const usernameOf = ({ username }: Consumer): string => username;
export const customIdOf = ({ custom_id: customId }: Consumer): string | null => customId;
export const ownerOf = ({ consumer_id: owner }: Credential): string => owner;

/** What objects are found by, beside their ids. Of these collections an object is made anew each time it is asked for. */
export const largeCollections = {
  consumers: [usernameOf, customIdOf],
  credentials: [lookupOf, ownerOf],
} as const;

export const isLarge = (name: CollectionName): name is keyof typeof largeCollections =>
  Object.hasOwn(largeCollections, name);
