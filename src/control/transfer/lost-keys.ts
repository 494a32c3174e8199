// Certificates in a document whose keys are masked and nowhere to be found, although nobody has to write them anew; changes nothing.
import { type ApplicationPart, referenceOf } from "../../model/application.ts";
import { MASK } from "../../model/export-document.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { isDocument } from "../body.ts";
import type { Item } from "./identities.ts";

/** Without what a certificate was issued with: it is ordered anew. */
const NOT_ISSUED = {
  certificate: null,
  sealed_key: null,
  not_before: null,
  not_after: null,
  issuer: null,
  fingerprint: null,
} as const;

/**
 * A document may have been written while an application still had a self-signed certificate: that is left out, and the
 * application gets another one if it still needs it. A certificate that an authority issues is ordered again. Uploaded ones
 * stay as they are, and their masks are refused: nobody but their owner has the key.
 */
export function withoutLostKeys(items: readonly Item[], base: GatewayConfig): readonly Item[] {
  const interim = new Set(items.flatMap(selfSignedPartsOf));
  return items.flatMap((item) => {
    if (!hasLostKey(item, base)) return [item];
    const { fields, id } = item;
    if (fields["source"] === "acme") return [{ ...item, fields: { ...fields, ...NOT_ISSUED } }];
    return interim.has(id) ? [] : [item];
  });
}

const hasLostKey = ({ collection, fields, id }: Item, { certificates }: GatewayConfig) =>
  collection === "certificates" &&
  fields["sealed_key"] === MASK &&
  (certificates.get(id)?.sealed_key ?? null) === null;

function selfSignedPartsOf({ collection, fields }: Item): string[] {
  const { parts } = fields;
  if (collection !== "applications" || !Array.isArray(parts)) return [];
  return parts.filter(isDocument).flatMap((part) => {
    const id = part["role"] === "self_signed" ? referenceOf(part as ApplicationPart)?.id : null;
    return typeof id === "string" ? [id] : [];
  });
}
