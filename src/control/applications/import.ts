// Applications in an imported document: what it says anew about one is carried to the parts that it does not speak of itself.
import type { Clock } from "../../clock.ts";
import {
  type Application,
  type ApplicationPart,
  type PartCollection,
  referenceOf,
} from "../../model/application.ts";
import { ApiError } from "../../model/error.ts";
import type { Document } from "../body.ts";
import type { Draft } from "../draft.ts";
import { splitMessage } from "../transfer/source.ts";
import { planHttps } from "./https-plan.ts";
import { checkApplication } from "./input.ts";
import { objectOf, partOf, storedPart } from "./parts.ts";
import { reconcile } from "./reconcile.ts";
import { isOutworn } from "./signing.ts";
import { inputOf } from "./view.ts";
import { wantedParts } from "./wanted-parts.ts";

/** A document that says what an application is to be need not know of its parts: those that the gateway has are meant. */
export function withKnownParts(fields: Document, old: Document | undefined): Document {
  const { parts } = fields;
  if (old === undefined || (Array.isArray(parts) && parts.length > 0)) return fields;
  return { ...fields, parts: old["parts"], https_state: old["https_state"] };
}

/**
 * To be called when the document is in the draft. An application whose parts are as it says is left as it is, with whatever
 * somebody changed about them. Certificates that are signed here follow after the import.
 */
export function completeApplications(document: Document, draft: Draft, clock: Clock): void {
  if (document["applications"] === undefined) return;
  for (const { id } of [...draft.config.applications.values()]) {
    keepStateOfHttps(id, draft);
    keepPartsAtHand(id, document, draft);
  }
  const written = [...draft.config.applications.values()].filter(
    (application) =>
      draft.pathOf(application.id) !== null && isToBeDone(application, document, draft),
  );
  // A name that moves from one to another is given up before it is taken.
  const inOrder = written.toSorted((a, b) => b.parts.length - a.parts.length);
  for (const application of inOrder) {
    try {
      complete(application, document, { draft, clock });
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
 * How far HTTPS has come is found out by each gateway for itself: a document that was written before a certificate was
 * issued must not take that back.
 */
function keepStateOfHttps(id: string, draft: Draft): void {
  const [application, old] = [draft.config.applications.get(id), draft.base.applications.get(id)];
  if (application === undefined || old === undefined || application === old) return;
  const own = old.parts.filter(({ role }) => role === "self_signed");
  const parts = [...application.parts.filter(({ role }) => role !== "self_signed"), ...own];
  const role = { role: "self_signed", collection: "certificates" } as const;
  const certificate = objectOf(draft.base, old, role);
  if (certificate !== undefined && certificate !== draft.config.certificates.get(certificate.id))
    draft.put("certificates", certificate);
  draft.put("applications", {
    ...application,
    https_state: old.https_state,
    parts: inOrderOf(old, parts),
  });
}

/** The order says nothing, and a difference would be shown. */
function inOrderOf(old: Application, parts: readonly ApplicationPart[]): ApplicationPart[] {
  const places = new Map(old.parts.map(({ role }, index) => [role, index]));
  const placeOf = ({ role }: ApplicationPart) => places.get(role) ?? old.parts.length;
  return parts.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** Parts that the document names and does not hold may be those of another gateway: this one's own take their places. */
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
    // Its key is on another gateway: this one makes its own.
    return part.role === "self_signed" ? [] : part;
  });
  if (Bun.deepEquals(parts, application.parts)) return;
  const { https_state: state } = application;
  const isSigned = parts.some(({ role }) => role === "self_signed");
  const https_state = isSigned ? state : { ...state, self_signed: [] };
  draft.put("applications", { ...application, https_state, parts });
}

/** What an application says must be what it last made of its parts. */
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

/** Of an application that comes from elsewhere, parts that the document does not speak of are made here. */
const isLeftOut = (
  collection: PartCollection,
  document: Document,
  { application, draft }: { readonly application: Application; readonly draft: Draft },
): boolean => document[collection] === undefined && !draft.base.applications.has(application.id);

function complete(
  old: Application,
  document: Document,
  { draft, clock }: { readonly draft: Draft; readonly clock: Clock },
): void {
  const input = checkApplication(inputOf(old), draft.config);
  const ordered = objectOf(draft.config, old, { role: "certificate", collection: "certificates" });
  const previous = old.https_state;
  const plan = planHttps(input, { config: draft.config, now: clock.now(), ordered, previous });
  const https_state = {
    ...plan,
    self_signed: previous.self_signed.filter((name) => input.domains.includes(name)),
  };
  const application = { ...input, https_state };
  const parts = reconcile({
    ...{ draft, application, parts: old.parts },
    ...{ adopt: true, accept: false, force: false, automatic: false },
    sign: (certificate) => (isOutworn(certificate, clock.now()) ? null : certificate),
    revives: (collection) => isLeftOut(collection, document, { application: old, draft }),
  });
  const { id, created_at, updated_at } = old;
  draft.put("applications", { id, ...application, parts, created_at, updated_at });
}
