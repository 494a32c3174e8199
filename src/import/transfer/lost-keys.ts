// Handles imported certificates with masked keys that the gateway can issue again; changes nothing.
import { type ApplicationPart, referenceOf } from "../../model/application.ts";
import { signedRoles } from "../../applications/reconcile.ts";
import { isRenewed } from "../../model/certificate.ts";
import { MASK } from "../../model/export-document.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { isDocument } from "../../control/body.ts";
import type { Item } from "./identities.ts";

/** Clears the material of a certificate: the gateway requests it again. */
const NOT_ISSUED = {
  certificate: null,
  sealed_key: null,
  not_before: null,
  not_after: null,
  issuer: null,
  fingerprint: null,
} as const;

/**
 * Drops a certificate that the gateway signed for an application, which gets a new one if it still needs it. Clears another one of a
 * CA, so that the gateway requests it again. Uploaded ones stay, and the import rejects their masks: only their owner has the key.
 */
export function withoutLostKeys(items: readonly Item[], base: GatewayConfig): readonly Item[] {
  const interim = new Set(items.flatMap(signedPartsOf));
  return items.flatMap((item) => {
    if (!hasLostKey(item, base)) return [item];
    const { fields, id } = item;
    if (interim.has(id)) return [];
    return isRenewed({ source: String(fields["source"]) })
      ? [{ ...item, fields: { ...fields, ...NOT_ISSUED } }]
      : [item];
  });
}

const hasLostKey = ({ collection, fields, id }: Item, { certificates }: GatewayConfig) =>
  collection === "certificates" &&
  fields["sealed_key"] === MASK &&
  (certificates.get(id)?.sealed_key ?? null) === null;

function signedPartsOf({ collection, fields }: Item): string[] {
  const { parts } = fields;
  if (collection !== "applications" || !Array.isArray(parts)) return [];
  return parts.filter(isDocument).flatMap((part) => {
    const isSigned = signedRoles.includes(String(part["role"]));
    const id = isSigned ? referenceOf(part as ApplicationPart)?.id : null;
    return typeof id === "string" ? [id] : [];
  });
}
