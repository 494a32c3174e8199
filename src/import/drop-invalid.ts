// Makes the result of an import valid: drops invalid objects, and closes routes that lost a protection.
import { randomBytes } from "node:crypto";
import { SecretBox } from "../crypto/secret-box.ts";
import { ApiError } from "../model/error.ts";
import { DOCUMENT_FORMAT } from "../model/export-document.ts";
import { type CollectionName, collectionNames } from "../model/gateway-config.ts";
import { compileSteps } from "../snapshot/compile.ts";
import type { TextCheck } from "../model/object-rules.ts";
import { finish, type Steps } from "../pace.ts";
import { emptyConfiguration } from "../store/first-configuration.ts";
import { decodeRecord } from "../model/records.ts";
import type { Document } from "../control/body.ts";
import { Draft } from "../control/draft.ts";
import { fieldChecks } from "../control/field-checks.ts";
import { describeProblem } from "../control/reference.ts";
import { systemClock } from "../clock.ts";
import { completeApplications } from "./transfer/applications.ts";
import { createImportNormalizers } from "./transfer/import-normalizers.ts";
import { applySteps } from "./transfer/plan.ts";
import { DECODED_EARLY } from "./transfer/decoded-early.ts";
import { holdsSecrets, sealSecrets } from "./transfer/secret-material.ts";
import { shareHosts } from "./exposure.ts";
import { CLOSING } from "./host-results.ts";
import type { LostProtection, OutputObject, OutputScope, Output } from "./output.ts";

/** More than the longest chain of references. */
const MAX_ROUNDS = 100;

/** The configuration file to import. Reports every dropped object. */
export const dropInvalid = (output: Output): Document =>
  finish(dropInvalidSteps(output, fieldChecks.regex));

/** The same in steps. */
export function* dropInvalidSteps(output: Output, regex: TextCheck): Steps<Document> {
  const box = new SecretBox(randomBytes(32));
  const decoded: Decoded = new Map();
  let valid = wholeOnes(dropUndecodable(output, box, decoded), output);
  for (let round = 0; ; round++) {
    const invalid = yield* problemsOf(valid, output, { box, decoded, regex });
    if (invalid.size === 0) break;
    if (round === MAX_ROUNDS) throw new ApiError(400, "the configuration could not be converted");
    for (const [object, why] of invalid) drop(object, why, output);
    valid = wholeOnes(
      valid.filter((object) => !invalid.has(object)),
      output,
    );
  }
  closeUnprotected(valid, output);
  return documentOf(valid);
}

/** Without applications that lost a part: they would create it again. */
function wholeOnes(valid: readonly OutputObject[], output: Output): OutputObject[] {
  const ids = new Set(valid.map(({ id }) => id));
  return valid.filter((object) => {
    const isWhole = object.parts.every((id) => ids.has(id));
    if (!isWhole) output.report.retract("imported", object.label);
    return isWhole;
  });
}

function drop(object: OutputObject, why: string, output: Output): void {
  output.report.retract("imported", object.label);
  if (object.collection === "applications") {
    output.report.changed(object.label, `became single objects, not an application: ${why}`);
    return;
  }
  output.report.omitted(object.label, `the gateway rejects it: ${why}`);
  if (!object.protects) return;
  const { fields, label } = object;
  if (object.collection === "plugins")
    output.loseProtection({ scope: fields as OutputScope, what: label });
  if (object.collection !== "routes") return;
  const hosts = (fields["hosts"] ?? []) as readonly string[];
  const priority = Number(fields["priority"] ?? 0);
  output.loseProtection({ scope: {}, what: label, missingRoute: { hosts, priority } });
}

/** Objects as they are stored, so that no round decodes them again. */
type Decoded = Map<OutputObject, Document>;

/** Object by object, because decoding a whole file stops at the first invalid one. */
function dropUndecodable(output: Output, box: SecretBox, decoded: Decoded): OutputObject[] {
  return output.objects.filter((object) => {
    const { collection, id } = object;
    const { created_at, updated_at, ...fields } = object.fields;
    const isEarly = DECODED_EARLY.some((name) => name === collection) && !holdsSecrets(fields);
    try {
      const sealed = isEarly ? fields : sealSecrets(fields, { old: undefined, box });
      const found = decodeRecord[collection](sealed);
      if (isEarly) decoded.set(object, { id, created_at, updated_at, ...found });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      drop(object, error.message, output);
      return false;
    }
  });
}

/** Invalid objects, each with its problem. */
function* problemsOf(
  valid: readonly OutputObject[],
  output: Output,
  {
    box,
    decoded,
    regex,
  }: { readonly box: SecretBox; readonly decoded: Decoded; readonly regex: TextCheck },
): Steps<Map<OutputObject, string>> {
  const at = new Date(0).toISOString();
  const draft = new Draft(emptyConfiguration(at), () => at);
  const normalizers = createImportNormalizers(box, output.plugins);
  const lists = listsOf(valid);
  const invalid = new Map<OutputObject, string>();
  const addProblem = (message: string) => {
    const [, name = "", index = "", , rest = ""] =
      /^([a-z_]+)\[(\d+)\](\.?)([\s\S]*)$/.exec(message) ?? [];
    const object = lists.get(name as CollectionName)?.[Number(index)];
    if (object === undefined) throw new ApiError(400, message);
    if (!invalid.has(object)) invalid.set(object, rest.replace(/^: /, ""));
  };
  try {
    const document = documentOf(valid, decoded);
    const known = new WeakSet(decoded.values());
    yield* applySteps(document, draft, { mode: "replace", box, normalizers, decoded: known });
    completeApplications(document, draft, { clock: systemClock, isConverted: true });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    addProblem(error.message);
    return invalid;
  }
  const result = yield* compileSteps(draft.config, null, {
    tls: { cert: "", key: "" },
    checks: { ...fieldChecks, regex },
    managementAddresses: [],
    revision: 0,
    plugins: output.plugins,
    openSealed: (sealed) => box.open(sealed),
  });
  if ("issues" in result)
    for (const issue of result.issues) addProblem(describeProblem(issue, draft));
  return invalid;
}

function listsOf(valid: readonly OutputObject[]): Map<CollectionName, OutputObject[]> {
  const lists = new Map<CollectionName, OutputObject[]>();
  for (const object of valid) {
    const list = lists.get(object.collection);
    if (list === undefined) lists.set(object.collection, [object]);
    else list.push(object);
  }
  return lists;
}

function documentOf(valid: readonly OutputObject[], decoded: Decoded = new Map()): Document {
  const lists = listsOf(valid);
  const documentFor = (object: OutputObject) =>
    decoded.get(object) ?? { id: object.id, ...object.fields };
  const filled = collectionNames.flatMap((name) => {
    const list = lists.get(name);
    return list === undefined ? [] : [[name, list.map(documentFor)]];
  });
  return {
    format: DOCUMENT_FORMAT,
    ...(Object.fromEntries(filled) as Document),
  };
}

/** No client gains access that the source denied. Maintenance, because requests of a disabled route may match another one. */
function closeUnprotected(
  valid: readonly OutputObject[],
  { lostProtections, report }: Output,
): void {
  for (const { scope, what, missingRoute } of lostProtections)
    for (const object of valid) {
      if (!isHit(object, scope)) continue;
      if (missingRoute !== undefined && !isBehind(object, missingRoute)) continue;
      // The missing route itself may be imported, but disabled.
      const isDisabled = object.fields["enabled"] === false;
      if (missingRoute !== undefined && isDisabled && `${object.label} `.startsWith(`${what} `))
        continue;
      const lost = `${what} denied access and could not be imported`;
      if (object.collection === "routes") {
        object.fields["maintenance"] ??= {};
        report.changed(object.label, `${CLOSING}${lost}`);
      } else {
        object.fields["enabled"] = false;
        report.changed(object.label, `is disabled until you set up another protection: ${lost}`);
      }
    }
  closeApplications(valid);
}

/** An application decides about the maintenance of its route. */
function closeApplications(valid: readonly OutputObject[]): void {
  const closed = new Set(
    valid.flatMap(({ id, fields }) => (fields["maintenance"] === undefined ? [] : [id])),
  );
  for (const object of valid)
    if (object.parts.some((id) => closed.has(id))) object.fields["maintenance"] = true;
}

/** Whether this route could match requests of a missing one. */
function isBehind(
  { collection, fields }: OutputObject,
  { hosts, priority }: NonNullable<LostProtection["missingRoute"]>,
): boolean {
  const own = (fields["hosts"] ?? []) as readonly string[];
  return (
    collection === "routes" && Number(fields["priority"] ?? 0) <= priority && shareHosts(own, hosts)
  );
}

function isHit({ collection, id, fields }: OutputObject, scope: OutputScope): boolean {
  const { route_id = null, service_id = null, consumer_id = null, stream_route_id = null } = scope;
  // A lost protection for a consumer on a route disables the consumer.
  if (consumer_id !== null) return collection === "consumers" && id === consumer_id;
  if (stream_route_id !== null) return collection === "stream_routes" && id === stream_route_id;
  if (collection !== "routes" && collection !== "stream_routes") return false;
  if (route_id !== null) return id === route_id;
  return service_id === null || fields["service_id"] === service_id;
}
