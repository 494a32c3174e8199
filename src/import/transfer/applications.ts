// Applications in an imported file: applies their new fields to the parts that the file does not hold.
import type { Clock } from "../../clock.ts";
import {
  type Application,
  type ApplicationPart,
  type PartCollection,
  referenceOf,
} from "../../model/application.ts";
import { ApiError } from "../../model/error.ts";
import type { Document } from "../../control/body.ts";
import type { Draft } from "../../control/draft.ts";
import { splitMessage } from "./source.ts";
import { planHttps } from "../../applications/https-plan.ts";
import { checkApplication } from "../../applications/input.ts";
import { objectOf, partOf, storedPart } from "../../applications/parts.ts";
import { PartIndex } from "../../applications/part-index.ts";
import { reconcile, signedRoles } from "../../applications/reconcile.ts";
import { needsReplacement } from "../../applications/signing.ts";
import { inputOf } from "../../applications/view.ts";
import { wantedParts } from "../../applications/wanted-parts.ts";

/** A file may hold an application without its parts: adds the present ones. */
export function withKnownParts(fields: Document, old: Document | undefined): Document {
  const { parts } = fields;
  if (old === undefined || (Array.isArray(parts) && parts.length > 0)) return fields;
  return { ...fields, parts: old["parts"], https_state: old["https_state"] };
}

export interface CompleteOptions {
  readonly clock: Clock;
  /** Whether the file was converted from another program: its applications adopt the objects of their names that it holds. */
  readonly isConverted?: boolean;
}

/**
 * Call it when the file is in the draft. Leaves unchanged applications alone, with manual changes of their parts. Self-signed
 * certificates follow after the import.
 */
export function completeApplications(
  document: Document,
  draft: Draft,
  { clock, isConverted = false }: CompleteOptions,
): void {
  if (document["applications"] === undefined) return;
  for (const { id } of [...draft.config.applications.values()]) {
    keepStateOfHttps(id, draft);
    keepPartsAtHand(id, document, draft);
  }
  const written = [...draft.config.applications.values()].filter(
    (application) =>
      draft.pathOf(application.id) !== null &&
      (isConverted || isToBeDone(application, document, draft)),
  );
  // Releases a name before another application adopts it.
  // Completing one of a converted file creates no name that another one has.
  const index = isConverted ? { index: new PartIndex(draft.config) } : {};
  const inOrder = written.toSorted((a, b) => b.parts.length - a.parts.length);
  for (const application of inOrder) {
    try {
      complete(isConverted ? withoutMadeParts(application, draft) : application, document, {
        draft,
        clock,
        ...index,
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { path, message } = splitMessage(error.message);
      const place = draft.pathOf(application.id) ?? "applications";
      throw new ApiError(error.status, `${place}${path === "" ? "" : `.${path}`}: ${message}`, {
        cause: error,
      });
    }
  }
}

/**
 * Each gateway determines the state of HTTPS itself: a file from before the issue of a certificate must not reset it.
 */
function keepStateOfHttps(id: string, draft: Draft): void {
  const [application, old] = [draft.config.applications.get(id), draft.base.applications.get(id)];
  if (application === undefined || old === undefined || application === old) return;
  const own = old.parts.filter(({ role }) => signedRoles.includes(role));
  const parts = [...application.parts.filter(({ role }) => !signedRoles.includes(role)), ...own];
  for (const role of signedRoles) {
    const certificate = objectOf(draft.base, old, { role, collection: "certificates" });
    if (certificate !== undefined && certificate !== draft.config.certificates.get(certificate.id))
      draft.put("certificates", certificate);
  }
  draft.put("applications", {
    ...application,
    https_state: old.https_state,
    parts: inOrderOf(old, parts),
  });
}

/** The order has no meaning, but a difference would be shown. */
function inOrderOf(old: Application, parts: readonly ApplicationPart[]): ApplicationPart[] {
  const places = new Map(old.parts.map(({ role }, index) => [role, index]));
  const placeOf = ({ role }: ApplicationPart) => places.get(role) ?? old.parts.length;
  return parts.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** Parts that the file names without holding them may be from another gateway: uses this one's instead. */
function keepPartsAtHand(id: string, document: Document, draft: Draft): void {
  const [application, old] = [draft.config.applications.get(id), draft.base.applications.get(id)];
  if (application === undefined || application === old) return;
  const isThere = (part: ApplicationPart) => {
    const reference = referenceOf(part);
    return reference !== null && storedPart(draft.config, reference) !== undefined;
  };
  const parts = application.parts.flatMap((part) => {
    const reference = referenceOf(part);
    if (reference === null || isThere(part)) return part;
    const own = old && partOf(old, part.role);
    const isSpokenOf = document[reference.collection] !== undefined;
    if (!isSpokenOf && own !== undefined && isThere(own)) return own;
    // Its key is on another gateway: this one generates its own.
    return signedRoles.includes(part.role) ? [] : part;
  });
  if (Bun.deepEquals(parts, application.parts)) return;
  const { https_state: state } = application;
  const has = (role: string) => parts.some((part) => part.role === role);
  const https_state = {
    ...state,
    local: has("local") ? state.local : [],
    self_signed: has("self_signed") ? state.self_signed : [],
  };
  draft.put("applications", { ...application, https_state, parts });
}

/** Whether an application differs from what its parts were last made from. */
function isToBeDone(application: Application, document: Document, draft: Draft): boolean {
  const wanted = wantedParts(application, (role) => {
    const part = partOf(application, role);
    return (part && referenceOf(part)?.id) ?? "";
  });
  if (wanted.length !== application.parts.length) return true;
  return wanted.some((one) => {
    const part = partOf(application, one.role);
    if (part === undefined) return true;
    const isGone = !draft.config[one.collection].has(one.id);
    if (isGone && isLeftOut(one.collection, document, { application, draft })) return true;
    return Object.entries(one.fields).some(
      ([field, value]) => !Bun.deepEquals(part.fields[field], value),
    );
  });
}

/**
 * The converted file holds the parts as they should be, and an earlier import may have made them: without those, the
 * application adopts the parts of the file. Parts that it no longer has are deleted.
 */
function withoutMadeParts(application: Application, draft: Draft): Application {
  const wanted = new Set(wantedParts(application, () => "").map(({ role }) => role));
  const parts = application.parts.filter(({ role }) => !wanted.has(role));
  const left = { ...application, parts };
  draft.put("applications", left);
  return left;
}

/** For an application from another gateway, the missing parts are created here. */
const isLeftOut = (
  collection: PartCollection,
  document: Document,
  { application, draft }: { readonly application: Application; readonly draft: Draft },
): boolean => document[collection] === undefined && !draft.base.applications.has(application.id);

function complete(
  old: Application,
  document: Document,
  {
    draft,
    clock,
    ...index
  }: { readonly draft: Draft; readonly clock: Clock; readonly index?: PartIndex },
): void {
  const input = checkApplication(inputOf(old), draft.config);
  const ordered = objectOf(draft.config, old, { role: "certificate", collection: "certificates" });
  const previous = old.https_state;
  const plan = planHttps(input, {
    config: draft.config,
    now: clock.now(),
    ordered,
    previous,
    isPermitted: () => false,
  });
  const https_state = {
    ...plan,
    local: previous.local.filter((name) => input.domains.includes(name)),
    self_signed: previous.self_signed.filter((name) => input.domains.includes(name)),
  };
  const application = { ...input, https_state };
  const parts = reconcile({
    ...index,
    draft,
    application,
    parts: old.parts,
    adopt: true,
    accept: false,
    force: false,
    automatic: false,
    sign: (certificate) => (needsReplacement(certificate, clock.now()) ? null : certificate),
    revives: (collection) => isLeftOut(collection, document, { application: old, draft }),
  });
  const { id, created_at, updated_at } = old;
  draft.put("applications", { id, ...application, parts, created_at, updated_at });
}
