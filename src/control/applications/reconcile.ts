// Makes the parts of an application what it says, in a draft: only what its own change affects is written. No HTTP words.
import {
  type ApplicationPart,
  createPart,
  type PartCollection,
  type PartReference,
  referenceOf,
} from "../../model/application.ts";
import type { Certificate } from "../../model/certificate.ts";
import type { ResourceOf } from "../../model/gateway-config.ts";
import { decodeRecord } from "../../store/records.ts";
import type { Draft } from "../draft.ts";
import { deleteWithOwned } from "../removal.ts";
import { PartFinder } from "./part-finder.ts";
import { decidedFields, type StoredPart, storedPart } from "./parts.ts";
import { type Fields, type Planned, type WantedPart, wantedParts } from "./wanted-parts.ts";

/** Gives a self-signed certificate for its names whatever it lacks; null when that has to wait. */
export type Sign = (certificate: Certificate) => Certificate | null;

export interface ReconcileOptions {
  readonly draft: Draft;
  /** How the application is to be. */
  readonly application: Planned;
  /** What it has made. */
  readonly parts: readonly ApplicationPart[];
  /** Take over objects that are there. */
  readonly adopt: boolean;
  /** What people changed about its parts, beside what it says about them itself, is how they are to be from now on. */
  readonly accept: boolean;
  /** Bring everything back that was changed or deleted by hand. */
  readonly force: boolean;
  /** Nobody asked for it: what somebody changed by hand stays. */
  readonly automatic: boolean;
  /** Whether a part that is gone is made anew; default: with `force` only. */
  readonly revives?: (collection: PartCollection) => boolean;
  readonly sign: Sign;
}

/** Returns the parts as they are now. Throws a 409 for what stands in the way. */
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

/** For a role that nothing has taken yet. Null: it has to wait. */
function make(wanted: WantedPart, options: ReconcileOptions): Fields | null {
  const { draft } = options;
  const old = storedPart(draft.config, wanted);
  const whole =
    old === undefined ? create(wanted, wanted.fields, draft) : { ...old, ...wanted.fields };
  const object = complete(wanted, whole as unknown as StoredPart, options);
  if (object === null) return null;
  write(wanted, object, draft);
  return decidedFields(object);
}

function update(wanted: WantedPart, part: ApplicationPart, options: ReconcileOptions): Fields {
  const { draft, accept, force, automatic, revives } = options;
  const made = { ...part.fields, ...wanted.fields };
  const old = storedPart(draft.config, wanted);
  if (old === undefined) {
    if (!force && revives?.(wanted.collection) !== true) return made;
    const object = complete(wanted, create(wanted, made, draft), options);
    if (object !== null) write(wanted, object, draft);
    return made;
  }
  const found = decidedFields(old);
  const changed = Object.entries(force ? made : wanted.fields).filter(([field, value]) => {
    if (force) return true;
    if (Bun.deepEquals(part.fields[field], value)) return false;
    return !automatic || Bun.deepEquals(part.fields[field], found[field]);
  });
  const object = complete(
    wanted,
    { ...old, ...Object.fromEntries(changed) } as unknown as StoredPart,
    options,
  );
  if (object === null) return part.fields;
  write(wanted, object, draft);
  return accept && !force ? { ...made, ...freeFields(found, wanted) } : made;
}

/** What somebody decided about an object that the application says nothing about. */
const freeFields = (found: Fields, wanted: WantedPart): Fields =>
  Object.fromEntries(Object.entries(found).filter(([field]) => !(field in wanted.fields)));

function create({ collection, id }: PartReference, fields: Fields, draft: Draft): StoredPart {
  const at = draft.stamp();
  const whole = decodeRecord[collection](fields);
  return { id, ...whole, created_at: at, updated_at: at } as unknown as StoredPart;
}

function complete(
  { role }: WantedPart,
  object: StoredPart,
  { sign }: ReconcileOptions,
): StoredPart | null {
  if (role !== "self_signed") return object;
  const certificate = object as Certificate;
  return certificate.source === "self_signed" ? sign(certificate) : object;
}

function write({ collection, id }: WantedPart, object: StoredPart, draft: Draft): void {
  const old = storedPart(draft.config, { collection, id });
  if (Bun.deepEquals(old, object) || !hasItsParents(object, draft)) return;
  const stamped = old === undefined ? object : { ...object, updated_at: draft.stamp() };
  draft.put<PartCollection>(collection, stamped as ResourceOf[PartCollection]);
}

/** What belongs to something that somebody deleted cannot be made: it is missing like that. */
function hasItsParents(object: StoredPart, { config }: Draft): boolean {
  const parents = { services: "service_id", routes: "route_id" } as const;
  return Object.entries(parents).every(([collection, field]) => {
    const id = (object as unknown as Fields)[field] ?? null;
    return id === null || config[collection as keyof typeof parents].has(String(id));
  });
}

function removeOtherTargets(wanted: readonly WantedPart[], { draft }: ReconcileOptions): void {
  const kept = new Set(wanted.map(({ id }) => id));
  const service = wanted.find(({ role }) => role === "service")?.id;
  for (const target of draft.config.targets.values())
    if (target.service_id === service && !kept.has(target.id)) draft.remove("targets", target.id);
}
