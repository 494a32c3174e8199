// Brings what an import made into a form that the gateway takes: what breaks a rule goes, what lost a protection is closed.
import { randomBytes } from "node:crypto";
import { SecretBox } from "../../crypto/secret-box.ts";
import { ApiError } from "../../model/error.ts";
import { DOCUMENT_FORMAT } from "../../model/export-document.ts";
import { type CollectionName, collectionNames } from "../../model/gateway-config.ts";
import { compile } from "../../snapshot/compile.ts";
import { emptyConfiguration } from "../../store/first-configuration.ts";
import { decodeRecord } from "../../store/records.ts";
import type { Document } from "../body.ts";
import { Draft } from "../draft.ts";
import { fieldChecks } from "../field-checks.ts";
import { describeProblem } from "../reference.ts";
import { createImportNormalizers } from "../transfer/import-normalizers.ts";
import { applyDocument } from "../transfer/plan.ts";
import { sealSecrets } from "../transfer/secret-material.ts";
import { shareHosts } from "./exposure.ts";
import type { Loss, Made, MadeScope, Output } from "./output.ts";

/** More rounds than references lie behind each other. */
const MAX_ROUNDS = 100;

/** The document to import. Everything that goes is reported. */
export function dropInvalid(output: Output): Document {
  const box = new SecretBox(randomBytes(32));
  let kept = dropUndecodable(output, box);
  for (let round = 0; ; round++) {
    const wrong = problemsOf(kept, output, box);
    if (wrong.size === 0) break;
    if (round === MAX_ROUNDS) throw new ApiError(400, "the configuration could not be converted");
    for (const [made, why] of wrong) drop(made, why, output);
    kept = kept.filter((made) => !wrong.has(made));
  }
  closeUnprotected(kept, output);
  return documentOf(kept);
}

function drop(made: Made, why: string, output: Output): void {
  output.report.retract("carried", made.label);
  output.report.leftOut(made.label, `the gateway does not take it: ${why}`);
  if (!made.protects) return;
  const { fields, label } = made;
  if (made.collection === "plugins") output.lose({ scope: fields as MadeScope, what: label });
  if (made.collection !== "routes") return;
  const hosts = (fields["hosts"] ?? []) as readonly string[];
  const priority = Number(fields["priority"] ?? 0);
  output.lose({ scope: {}, what: label, instead: { hosts, priority } });
}

/** Object by object, because a document is refused at the first one that is wrong. */
function dropUndecodable(output: Output, box: SecretBox): Made[] {
  return output.made.filter((made) => {
    const { created_at: _, updated_at: __, ...fields } = made.fields;
    try {
      decodeRecord[made.collection](sealSecrets(fields, { old: undefined, box }));
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      drop(made, error.message, output);
      return false;
    }
  });
}

/** What breaks a rule, and how. */
function problemsOf(kept: readonly Made[], output: Output, box: SecretBox): Map<Made, string> {
  const at = new Date(0).toISOString();
  const draft = new Draft(emptyConfiguration(at), () => at);
  const normalizers = createImportNormalizers(box, output.plugins);
  const lists = listsOf(kept);
  const wrong = new Map<Made, string>();
  const blame = (message: string) => {
    const [, name = "", index = "", , rest = ""] =
      /^([a-z_]+)\[(\d+)\](\.?)([\s\S]*)$/.exec(message) ?? [];
    const made = lists.get(name as CollectionName)?.[Number(index)];
    if (made === undefined) throw new ApiError(400, message);
    if (!wrong.has(made)) wrong.set(made, rest.replace(/^: /, ""));
  };
  try {
    applyDocument(documentOf(kept), draft, { mode: "replace", box, normalizers });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    blame(error.message);
    return wrong;
  }
  const result = compile(draft.config, null, {
    tls: { cert: "", key: "" },
    checks: fieldChecks,
    managementAddresses: [],
    revision: 0,
    plugins: output.plugins,
    openSealed: (sealed) => box.open(sealed),
  });
  if ("issues" in result) for (const issue of result.issues) blame(describeProblem(issue, draft));
  return wrong;
}

function listsOf(kept: readonly Made[]): Map<CollectionName, Made[]> {
  const lists = new Map<CollectionName, Made[]>();
  for (const made of kept) {
    const list = lists.get(made.collection);
    if (list === undefined) lists.set(made.collection, [made]);
    else list.push(made);
  }
  return lists;
}

function documentOf(kept: readonly Made[]): Document {
  const lists = listsOf(kept);
  const filled = collectionNames.flatMap((name) => {
    const list = lists.get(name);
    return list === undefined ? [] : [[name, list.map(({ id, fields }) => ({ id, ...fields }))]];
  });
  return {
    format: DOCUMENT_FORMAT,
    ...(Object.fromEntries(filled) as Document),
  };
}

/** Nobody may come in whom the source kept out. A route that is switched off would leave its requests to another one. */
function closeUnprotected(kept: readonly Made[], { losses, report }: Output): void {
  for (const { scope, what, instead } of losses)
    for (const made of kept) {
      if (!isHit(made, scope) || (instead !== undefined && !isBehind(made, instead))) continue;
      const until = `until you have set up another protection: ${what} kept clients out and could not be carried over`;
      if (made.collection === "routes") {
        made.fields["maintenance"] ??= {};
        report.changed(made.label, `answers 503 for maintenance ${until}`);
      } else {
        made.fields["enabled"] = false;
        report.changed(made.label, `is switched off ${until}`);
      }
    }
}

/** Whether requests of a route that is gone could come to this one. */
function isBehind(
  { collection, fields }: Made,
  { hosts, priority }: NonNullable<Loss["instead"]>,
): boolean {
  const own = (fields["hosts"] ?? []) as readonly string[];
  return (
    collection === "routes" && Number(fields["priority"] ?? 0) <= priority && shareHosts(own, hosts)
  );
}

function isHit({ collection, id, fields }: Made, scope: MadeScope): boolean {
  const { route_id = null, service_id = null, consumer_id = null, stream_route_id = null } = scope;
  // Of a protection for a consumer on a route, the consumer is what is held back.
  if (consumer_id !== null) return collection === "consumers" && id === consumer_id;
  if (stream_route_id !== null) return collection === "stream_routes" && id === stream_route_id;
  if (collection !== "routes" && collection !== "stream_routes") return false;
  if (route_id !== null) return id === route_id;
  return service_id === null || fields["service_id"] === service_id;
}
