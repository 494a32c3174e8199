// Reconciles the parts of an application in a draft: writes only what its own change affects. Knows no HTTP.
import {
  type ApplicationPart,
  createPart,
  type PartCollection,
  type PartReference,
  referenceOf,
} from "../model/application.ts";
import type { Certificate } from "../model/certificate.ts";
import { markOf } from "../model/fields.ts";
import type { ResourceOf } from "../model/gateway-config.ts";
import { decodeRecord } from "../model/records.ts";
import type { Draft } from "../control/draft.ts";
import { deleteWithOwned } from "../control/removal.ts";
import { PartFinder } from "./part-finder.ts";
import { PartIndex } from "./part-index.ts";
import { writableFields, type StoredPart, storedPart } from "./parts.ts";
import { type WantedPart, wantedParts } from "./wanted-parts.ts";
import type { Fields, Planned } from "./planned-part.ts";

/** Roles of the certificates that the gateway signs itself, as each gateway determines anew. */
export const signedRoles: readonly string[] = ["self_signed", "local"];

/** Completes a certificate that the gateway signs itself; null when that has to wait. */
export type Sign = (certificate: Certificate) => Certificate | null;

export interface ReconcileOptions {
  readonly draft: Draft;
  /** The new application. */
  readonly application: Planned;
  /** Its present parts. */
  readonly parts: readonly ApplicationPart[];
  /** Adopt existing objects. */
  readonly adopt: boolean;
  /** Accept manual changes of its parts in fields that it does not define. */
  readonly accept: boolean;
  /** Revert manual changes and deletions. */
  readonly force: boolean;
  /** An automatic update: retains manual changes. */
  readonly automatic: boolean;
  /** Whether to recreate a missing part; default: with `force` only. */
  readonly revives?: (collection: PartCollection) => boolean;
  readonly sign: Sign;
  /** Default: one of the draft as it is. */
  readonly index?: PartIndex;
}

/** Returns the new parts. Throws a 409 for a conflict. */
export function reconcile(options: ReconcileOptions): ApplicationPart[] {
  const { draft, application, parts, force } = options;
  const finder = new PartFinder(options);
  const wanted = wantedParts(application, finder.idOf);
  const roles = new Set(wanted.map(({ role }) => role));
  for (const part of parts) {
    const reference = referenceOf(part);
    if (roles.has(part.role) || reference === null) continue;
    if (storedPart(draft.config, reference) !== undefined) deleteWithOwned(draft, reference, false);
  }
  const made = wanted.flatMap((one) => {
    const part = parts.find(({ role }) => role === one.role);
    const fields = part === undefined ? make(one, options) : update(one, part, options);
    if (fields === null) return [];
    if (one.place !== null) draft.setPath(one.id, one.place);
    return [createPart(one.role, one, fields)];
  });
  const isTakenOver = options.adopt && !parts.some(({ role }) => role === "service");
  if (force || isTakenOver) removeOtherTargets(wanted, options);
  return made;
}

/** For a role without an object. Null: it has to wait. */
function make(wanted: WantedPart, options: ReconcileOptions): Fields | null {
  const { draft } = options;
  const old = storedPart(draft.config, wanted);
  const whole =
    old === undefined
      ? create(wanted, wanted.fields, options)
      : { ...old, ...wanted.fields, ...markOf(options.application) };
  const object = complete(wanted, whole as unknown as StoredPart, options);
  if (object === null) return null;
  write(wanted, object, draft);
  return writableFields(object);
}

function update(wanted: WantedPart, part: ApplicationPart, options: ReconcileOptions): Fields {
  const { draft, application, accept, force, automatic, revives } = options;
  const made = { ...part.fields, ...wanted.fields };
  const old = storedPart(draft.config, wanted);
  if (old === undefined) {
    if (!force && revives?.(wanted.collection) !== true) return made;
    const object = complete(wanted, create(wanted, made, options), options);
    if (object !== null) write(wanted, object, draft);
    return made;
  }
  const found = writableFields(old);
  const changed = Object.entries(force ? made : wanted.fields).filter(([field, value]) => {
    if (force) return true;
    if (Bun.deepEquals(part.fields[field], value)) return false;
    return !automatic || Bun.deepEquals(part.fields[field], found[field]);
  });
  const object = complete(
    wanted,
    { ...old, ...Object.fromEntries(changed), ...markOf(application) } as unknown as StoredPart,
    options,
  );
  if (object === null) return part.fields;
  write(wanted, object, draft);
  return accept && !force ? { ...made, ...freeFields(found, wanted) } : made;
}

/** Writable fields of an object that the application does not define. */
const freeFields = (found: Fields, wanted: WantedPart): Fields =>
  Object.fromEntries(Object.entries(found).filter(([field]) => !(field in wanted.fields)));

function create(
  { collection, id }: PartReference,
  fields: Fields,
  { draft, application }: ReconcileOptions,
): StoredPart {
  const at = draft.stamp();
  const whole = { ...decodeRecord[collection](fields), ...markOf(application) };
  return { id, ...whole, created_at: at, updated_at: at } as unknown as StoredPart;
}

function complete(
  { role }: WantedPart,
  object: StoredPart,
  { sign }: ReconcileOptions,
): StoredPart | null {
  if (!signedRoles.includes(role)) return object;
  const certificate = object as Certificate;
  return certificate.source === "self_signed" || certificate.source === "local_ca"
    ? sign(certificate)
    : object;
}

function write({ collection, id }: WantedPart, object: StoredPart, draft: Draft): void {
  const old = storedPart(draft.config, { collection, id });
  if (Bun.deepEquals(old, object) || !hasItsParents(object, draft)) return;
  const stamped = old === undefined ? object : { ...object, updated_at: draft.stamp() };
  draft.put<PartCollection>(collection, stamped as ResourceOf[PartCollection]);
}

/** Whether its parents exist: a part of a deleted object cannot be created. */
function hasItsParents(object: StoredPart, { config }: Draft): boolean {
  const parents = { services: "service_id", routes: "route_id" } as const;
  return Object.entries(parents).every(([collection, field]) => {
    const id = (object as unknown as Fields)[field] ?? null;
    return id === null || config[collection as keyof typeof parents].has(String(id));
  });
}

function removeOtherTargets(
  wanted: readonly WantedPart[],
  { draft, index }: ReconcileOptions,
): void {
  const kept = new Set(wanted.map(({ id }) => id));
  const service = wanted.find(({ role }) => role === "service")?.id ?? "";
  if (!draft.base.services.has(service)) return;
  const known = index ?? new PartIndex(draft.config);
  for (const target of known.targetsOf(service))
    if (!kept.has(target.id)) draft.remove("targets", target.id);
}
