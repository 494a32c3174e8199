// Stored parts of applications: lookup, ownership, and their writable fields.
import {
  type Application,
  type ApplicationPart,
  type PartCollection,
  type PartReference,
  referenceOf,
} from "../model/application.ts";
import { certificateFacts } from "../model/certificate.ts";
import type { GatewayConfig, ResourceOf } from "../model/gateway-config.ts";
import type { Fields } from "./planned-part.ts";

export type StoredPart = ResourceOf[PartCollection];

/** Read-only fields: identity, and facts of an issued certificate. */
const NOT_DECIDED = new Set([
  "id",
  "created_at",
  "updated_at",
  "managed_by",
  "certificate",
  "sealed_key",
  ...Object.keys(certificateFacts),
]);

export const storedPart = (
  config: GatewayConfig,
  { collection, id }: PartReference,
): StoredPart | undefined => config[collection].get(id);

/** A copy of the object's writable fields. */
export const writableFields = (object: StoredPart): Fields =>
  Object.fromEntries(Object.entries(object).filter(([field]) => !NOT_DECIDED.has(field)));

export function partOf(
  { parts }: Pick<Application, "parts">,
  role: string,
): ApplicationPart | undefined {
  return parts.find((part) => part.role === role);
}

/** The object of a role, if it exists. */
export function objectOf<K extends PartCollection>(
  config: GatewayConfig,
  application: Pick<Application, "parts">,
  { role, collection }: { readonly role: string; readonly collection: K },
): ResourceOf[K] | undefined {
  const part = partOf(application, role);
  const reference = part && referenceOf(part);
  if (reference?.collection !== collection) return undefined;
  return config[collection].get(reference.id) as ResourceOf[K] | undefined;
}
