// The parts of a configuration that only admins may read; the access table protects their paths.
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type SingletonName,
} from "../model/gateway-config.ts";

export type Part = CollectionName | SingletonName;

export const adminParts: readonly Part[] = [
  ...collectionNames.filter((name) => definitionOf(name).api.read === "admin"),
  "sso",
];

export const isAdminPart = (part: Part): boolean => adminParts.includes(part);
