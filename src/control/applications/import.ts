// Applications in an imported document: what it says anew about one is carried to the parts that it does not speak of itself.
import type { Clock } from "../../clock.ts";
import { type Application, type PartCollection, referenceOf } from "../../model/application.ts";
import { ApiError } from "../../model/error.ts";
import type { Document } from "../body.ts";
import type { Draft } from "../draft.ts";
import { splitMessage } from "../transfer/source.ts";
import { planHttps } from "./https-plan.ts";
import { checkApplication } from "./input.ts";
import { objectOf, partOf } from "./parts.ts";
import { reconcile } from "./reconcile.ts";
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
  const written = [...draft.config.applications.values()].filter(
    (application) =>
      draft.placeOf(application.id) !== null && isToBeDone(application, document, draft),
  );
  // A name that moves from one to another is given up before it is taken.
  const inOrder = written.toSorted((a, b) => b.parts.length - a.parts.length);
  for (const application of inOrder) {
    try {
      complete(application, document, { draft, clock });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { path, message } = splitMessage(error.message);
      const place = draft.placeOf(application.id) ?? "applications";
      throw new ApiError(error.status, `${place}${path === "" ? "" : `.${path}`}: ${message}`, {
        cause: error,
      });
    }
  }
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
    ...{ adopt: true, accept: false, force: false, automatic: false, sign: () => null },
    revives: (collection) => isLeftOut(collection, document, { application: old, draft }),
  });
  const { id, created_at, updated_at } = old;
  draft.put("applications", { id, ...application, parts, created_at, updated_at });
}
