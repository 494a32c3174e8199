// The parts of a configuration that only admins may see, in all representations; the access table does the same for API paths.
import type { CollectionName, SingletonName } from "../model/gateway-config.ts";

export type Part = CollectionName | SingletonName;

export const adminParts = ["users", "tokens", "secrets", "sso"] as const satisfies readonly Part[];

export const isAdminPart = (part: Part): boolean =>
  (adminParts as readonly string[]).includes(part);
