// What the gateway has made of what a document written by hand holds, and which the document therefore need not name; changes nothing.
import { referenceOf } from "../../model/application.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { isMadeOf } from "../acme/on-demand.ts";
import type { Item } from "./identities.ts";

/** Ids of objects that stay although a document that replaces everything leaves them out. */
export function unspokenOf(items: readonly Item[], base: GatewayConfig): readonly string[] {
  const byHand = items.filter(({ createdAt }) => (createdAt ?? null) === null);
  return byHand.flatMap((item) => [...partsOf(item, base), ...orderedFor(item, base)]);
}

/** Of an application that says nothing of its parts. */
function partsOf({ collection, id, fields }: Item, { applications }: GatewayConfig): string[] {
  if (collection !== "applications" || "parts" in fields) return [];
  const parts = applications.get(id)?.parts ?? [];
  return parts.flatMap((part) => referenceOf(part)?.id ?? []);
}

/** Certificates that clients asked for: ordering them anew each time would use up what authorities allow. */
function orderedFor({ collection, id, fields }: Item, { certificates }: GatewayConfig): string[] {
  const template = certificates.get(id);
  if (collection !== "certificates" || template === undefined) return [];
  if ((fields["on_demand"] ?? null) === null) return [];
  return [...certificates.values()].filter((one) => isMadeOf(template, one)).map((one) => one.id);
}
