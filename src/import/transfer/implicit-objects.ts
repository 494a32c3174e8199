// Objects that the gateway created for objects of a hand-written file, which need not list them; changes nothing.
import { referenceOf } from "../../model/application.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { isMadeOf } from "../../acme/on-demand.ts";
import type { Item } from "./identities.ts";

/** Ids of objects that stay although a replacing import omits them. */
export function implicitObjectsOf(items: readonly Item[], base: GatewayConfig): readonly string[] {
  const byHand = items.filter(({ createdAt }) => (createdAt ?? null) === null);
  return byHand.flatMap((item) => [...partsOf(item, base), ...issuedOnDemand(item, base)]);
}

/** Of an application without `parts`. */
function partsOf({ collection, id, fields }: Item, { applications }: GatewayConfig): string[] {
  if (collection !== "applications" || "parts" in fields) return [];
  const parts = applications.get(id)?.parts ?? [];
  return parts.flatMap((part) => referenceOf(part)?.id ?? []);
}

/** Certificates issued on demand: requesting them again each time would exhaust the rate limits of CAs. */
function issuedOnDemand(
  { collection, id, fields }: Item,
  { certificates }: GatewayConfig,
): string[] {
  const template = certificates.get(id);
  if (collection !== "certificates" || template === undefined) return [];
  if ((fields["on_demand"] ?? null) === null) return [];
  return [...certificates.values()].filter((one) => isMadeOf(template, one)).map((one) => one.id);
}
