// Services: responses include their targets, requests may; knows no HTTP.
import { decode } from "../model/decode.ts";
import { invalid } from "../model/error.ts";
import { definitionOf } from "../model/gateway-config.ts";
import { serviceWithTargetsInput } from "../model/service.ts";
import { isDocument } from "./body.ts";
import type { Changes } from "./change.ts";
import type { Draft } from "./draft.ts";
import type { TargetStates } from "./health/target-states.ts";
import { withIds } from "./key.ts";
import { type ServiceView, targetLookup } from "./representation.ts";
import { Resource, type ResourceKind } from "./resource.ts";
import { fieldsOfTarget, reconcileTargets } from "./targets.ts";

export function createServices(
  changes: Changes,
  states: TargetStates,
): Resource<"services", ServiceView> {
  return new Resource(changes, kindOf(states));
}

const kindOf = (states: TargetStates): ResourceKind<"services", ServiceView> => ({
  collection: "services",
  finished: "targets",
  decode: (document, draft, old) => {
    const { targets, ...input } = decode(serviceWithTargetsInput, withPlainTargets(document));
    const fields = withIds("services", input, draft.config);
    if (old === null && targets.length === 0) return { fields };
    const ids = idsOfTargets(document);
    const isMissing = isDocument(document) && !Object.hasOwn(document, "targets");
    return {
      fields,
      finish: (service, changed: Draft) => {
        const removed = reconcileTargets(
          changed,
          service.id,
          targets.map((target, index) => ({
            fields: fieldsOfTarget(target, service.id),
            id: ids[index] ?? null,
          })),
        );
        if (isMissing && removed > 0)
          changed.warn(
            `${removed} ${removed === 1 ? "target was" : "targets were"} removed: targets is missing in the body`,
          );
      },
    };
  },
  viewer: (config) => {
    const targetsOf = targetLookup(config);
    return (service) => ({ ...service, targets: targetsOf(service.id).map(states.view) });
  },
  content: (config) => {
    const targetsOf = targetLookup(config);
    return (service) => [service, targetsOf(service.id)];
  },
});

/** Removes read-only fields of targets that clients send back. */
export function withPlainTargets(document: unknown): unknown {
  if (!isDocument(document) || !Array.isArray(document["targets"])) return document;
  const targets = document["targets"].map((target: unknown) => {
    if (!isDocument(target)) return target;
    const plain: Record<string, unknown> = { ...target };
    const { readOnly } = definitionOf("targets");
    for (const field of ["id", "service_id", "created_at", "updated_at", ...readOnly])
      delete plain[field];
    return plain;
  });
  return { ...document, targets };
}

function idsOfTargets(document: unknown): (string | null)[] {
  const targets = isDocument(document) ? document["targets"] : null;
  if (!Array.isArray(targets)) return [];
  return targets.map((target: unknown, index) => {
    const id = isDocument(target) ? target["id"] : undefined;
    if (id === undefined) return null;
    if (typeof id !== "string") throw invalid(`targets[${index}].id`, "must be a string");
    return id;
  });
}
