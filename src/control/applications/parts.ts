// Parts of applications as they are stored: found, told apart from what others own, and read without what they do not decide.
import type {
  Application,
  ApplicationPart,
  PartCollection,
  PartReference,
} from "../../model/application.ts";
import { referenceOf } from "../../model/application.ts";
import { certificateFacts } from "../../model/certificate.ts";
import type { GatewayConfig, ResourceOf } from "../../model/gateway-config.ts";
import type { Fields } from "./wanted-parts.ts";

export type StoredPart = ResourceOf[PartCollection];

/** Not decided by anybody who writes an object: identity, and what a certificate was issued with. */
const NOT_DECIDED = new Set([
  "id",
  "created_at",
  "updated_at",
  "certificate",
  "sealed_key",
  ...Object.keys(certificateFacts),
]);

export const storedPart = (
  config: GatewayConfig,
  { collection, id }: PartReference,
): StoredPart | undefined => config[collection].get(id);

/** A copy of what somebody decided about the object. */
export const decidedFields = (object: StoredPart): Fields =>
  Object.fromEntries(Object.entries(object).filter(([field]) => !NOT_DECIDED.has(field)));

export function partOf(
  { parts }: Pick<Application, "parts">,
  role: string,
): ApplicationPart | undefined {
  return parts.find((part) => part.role === role);
}

/** The object that has a role, if it is still there. */
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

/** The application that an object is a part of. */
export function ownerOf(config: GatewayConfig, id: string): Application | undefined {
  for (const application of config.applications.values())
    if (application.parts.some((part) => referenceOf(part)?.id === id)) return application;
  return undefined;
}
