// Targets: written one by one or as the list of their service; knows no HTTP.
import { ApiError, invalid } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { type InlineTargetInput, placeKey, type Target } from "../model/target.ts";
import { isDocument } from "./body.ts";
import type { Changes } from "./change.ts";
import type { Draft } from "./draft.ts";
import { findByKey } from "./key.ts";
import type { QueryEntry } from "./list-filter.ts";
import type { TargetStates } from "./health/target-states.ts";
import type { TargetView } from "./representation.ts";
import {
  type FieldsOf,
  type Read,
  Resource,
  type ResourceKind,
  type Written,
  type WriteOptions,
} from "./resource.ts";

export class Targets extends Resource<"targets", TargetView> {
  readonly #services: () => GatewayConfig["services"];

  constructor(changes: Changes, states: TargetStates) {
    super(changes, kindOf(states));
    this.#services = () => changes.config.services;
  }

  /** Targets of the service with the id or name `key`; throws a 404 when there is none. */
  listIn(key: string, query: readonly QueryEntry[]): Read<readonly TargetView[]> {
    return this.list([...query, ["service_id", this.#serviceId(key)]]);
  }

  async createIn(key: string, body: unknown, options: WriteOptions): Promise<Written<TargetView>> {
    const id = this.#serviceId(key);
    if (!isDocument(body)) return this.create(body, options);
    const named = body["service_id"];
    if (named !== undefined && named !== key && named !== id)
      throw invalid("service_id", "must be the service in the path, or absent");
    return this.create({ ...body, service_id: id }, options);
  }

  #serviceId(key: string): string {
    const service = findByKey(this.#services(), key);
    if (service === null) throw new ApiError(404, `service "${key}" does not exist`);
    return service.id;
  }
}

const kindOf = (states: TargetStates): ResourceKind<"targets", TargetView> => ({
  collection: "targets",
  viewer: () => states.view,
});

export function fieldsOfTarget(input: InlineTargetInput, serviceId: string): FieldsOf<"targets"> {
  return { service_id: serviceId, ...input };
}

/** A target in its service's document; `id` when the document has one. */
export interface WantedTarget {
  readonly fields: FieldsOf<"targets">;
  readonly id: string | null;
}

/**
 * Replaces the targets of a service with the list. A target with the id or the host and port of a present one keeps its id
 * and run-time state. Returns the number of removed targets.
 */
export function reconcileTargets(
  draft: Draft,
  serviceId: string,
  wanted: readonly WantedTarget[],
): number {
  const left = new Map<string, Target>();
  for (const target of draft.config.targets.values())
    if (target.service_id === serviceId) left.set(target.id, target);
  const byAddress = new Map([...left.values()].map((target) => [placeKey(target), target]));
  const named = wanted.map(({ id }) => (id === null ? undefined : left.get(id)));
  for (const target of named) if (target !== undefined) left.delete(target.id);
  for (const [index, { fields }] of wanted.entries()) {
    const sameAddress = byAddress.get(placeKey(fields));
    const old = named[index] ?? (sameAddress && left.get(sameAddress.id));
    if (old !== undefined) left.delete(old.id);
    const id = putTarget(draft, old, fields);
    draft.setPath(id, `targets[${index}]`);
  }
  for (const id of left.keys()) draft.remove("targets", id);
  return left.size;
}

function putTarget(draft: Draft, old: Target | undefined, fields: FieldsOf<"targets">): string {
  if (old === undefined) {
    const at = draft.stamp();
    const id = Bun.randomUUIDv7();
    draft.put("targets", { id, ...fields, created_at: at, updated_at: at });
    return id;
  }
  const { id, created_at, updated_at } = old;
  const same: Target = { id, ...fields, created_at, updated_at };
  if (!Bun.deepEquals(same, old)) draft.put("targets", { ...same, updated_at: draft.stamp() });
  return id;
}
