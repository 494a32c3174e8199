// Objects that are decoded before the change that imports them, where that makes no difference; knows no file.
import { isDocument } from "../../control/body.ts";
import { ApiError } from "../../model/error.ts";
import type { CollectionName } from "../../model/gateway-config.ts";
import { decodeRecord } from "../../model/records.ts";
import { holdsSecrets } from "./secret-material.ts";

/** Collections that may be large, and whose objects the import treats the same with every default filled in. */
export const DECODED_EARLY = [
  "services",
  "targets",
  "routes",
  "stream_routes",
  "consumers",
  "plugins",
] as const satisfies readonly CollectionName[];

/**
 * The object with its fields as they are stored. Null for one with secrets, which are encrypted first, and for an invalid one:
 * the import reports its problem later, in order.
 */
export function decodeEarly(
  collection: (typeof DECODED_EARLY)[number],
  value: unknown,
): Readonly<Record<string, unknown>> | null {
  if (!isDocument(value) || holdsSecrets(value)) return null;
  const { id, created_at, updated_at, ...fields } = value;
  try {
    return { id, created_at, updated_at, ...decodeRecord[collection](fields) };
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
