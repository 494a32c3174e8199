// Objects that the gateway created for objects of a hand-written file, which need not list them; changes nothing.
import { isMadeOf } from "../../acme/on-demand.ts";
import { driftOf } from "../../applications/drift.ts";
import { partOf, storedPart } from "../../applications/parts.ts";
import { type Document, isDocument } from "../../control/body.ts";
import { type Application, referenceOf } from "../../model/application.ts";
import { issuedFields } from "../../model/certificate.ts";
import { UUID_PATTERN } from "../../model/fields.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { recordSchemas } from "../../model/records.ts";
import { withoutDefaults } from "../../model/without-defaults.ts";
import type { Steps } from "../../pace.ts";
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

/**
 * Ids of objects that an import makes again from others of the exported file: parts of applications without changes by hand, and
 * certificates on demand.
 */
export function* impliedSteps(
  document: Document,
  config: GatewayConfig,
): Steps<ReadonlySet<string>> {
  const implied = new Set<string>();
  const certificates = [...config.certificates.values()];
  for (const template of certificates.filter(({ on_demand }) => on_demand !== null))
    for (const one of certificates) {
      if (isMadeOf(template, one)) implied.add(one.id);
      yield;
    }
  const unchanged: Application[] = [];
  for (const one of config.applications.values()) {
    if (isUnchanged(one, config)) unchanged.push(one);
    yield;
  }
  for (const id of unchanged.flatMap(partIdsOf)) implied.add(id);
  // An import resolves names before it makes the parts: those that others refer to must stand in the file.
  const referred = yield* referredByOthers(document, implied);
  for (const ids of unchanged.map(partIdsOf))
    if (ids.some((id) => referred.has(id))) for (const id of ids) implied.delete(id);
  return implied;
}

/** Whether an import makes all parts of the application. */
export const isImplied = (application: Application, implied: ReadonlySet<string>): boolean =>
  partIdsOf(application).every((id) => implied.has(id));

const partIdsOf = ({ parts }: Application): string[] =>
  parts.flatMap((part) => referenceOf(part)?.id ?? []);

/** Whether its parts are exactly what it makes: the import would lose a field that a person has set. */
function isUnchanged(application: Application, config: GatewayConfig): boolean {
  if (driftOf(application, config).length > 0) return false;
  return application.parts.every((part) => {
    const reference = referenceOf(part);
    const object = reference === null ? undefined : storedPart(config, reference);
    if (reference === null || object === undefined) return false;
    const { id: _, created_at: __, updated_at: ___, ...fields } = object;
    const own = withoutDefaults(recordSchemas[reference.collection], fields) as Document;
    const decided = partOf(application, part.role)?.fields ?? {};
    return Object.keys(own).every((name) => name in decided || issuedFields.includes(name));
  });
}

function* referredByOthers(
  document: Document,
  implied: ReadonlySet<string>,
): Steps<ReadonlySet<string>> {
  const others = Object.entries(document).map(([name, value]) => {
    if (!Array.isArray(value)) return value;
    const objects = value.filter(isDocument).filter(({ id }) => !implied.has(String(id)));
    return name === "applications" ? objects.map(({ parts: _, ...fields }) => fields) : objects;
  });
  return yield* idSteps(others);
}

/** Every id in the values, apart from the `id` of the objects in lists themselves. */
export function* idSteps(roots: readonly unknown[]): Steps<ReadonlySet<string>> {
  const found = new Set<string>();
  const visit = (value: unknown, depth: number): void => {
    if (typeof value === "string") {
      if (UUID_PATTERN.test(value)) found.add(value);
    } else if (Array.isArray(value)) for (const item of value) visit(item, depth + 1);
    else if (isDocument(value))
      for (const [name, inner] of Object.entries(value))
        if (name !== "id" || depth > 1) visit(inner, depth + 1);
  };
  for (const root of roots) {
    if (!Array.isArray(root)) visit(root, 0);
    else
      for (const item of root) {
        visit(item, 1);
        yield;
      }
  }
  return found;
}
