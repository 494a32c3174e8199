// The parts of a configuration that only admins may read; the access table protects their paths.
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type SingletonName,
  singletonNames,
} from "../model/gateway-config.ts";

export type Part = CollectionName | SingletonName;

export const adminParts: readonly Part[] = [
  ...collectionNames.filter((name) => definitionOf(name).api.read === "admin"),
  "sso",
];

/** Whether only admins may write the part. */
export const isWrittenByAdmins = (part: string): boolean =>
  (singletonNames as readonly string[]).includes(part) ||
  collectionNames.some((name) => name === part && definitionOf(name).api.write === "admin");

export const isAdminPart = (part: Part): boolean => adminParts.includes(part);
