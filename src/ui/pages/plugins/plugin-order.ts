// The place of an instance among those that can run in the same request; renders nothing.
import type { Read } from "../../api/resources.ts";
import { type PluginSchema, priorityOf, rankOf, scopeFields } from "./plugin-values.ts";

type Instance = Read<"plugins">;
type Schemas = ReadonlyMap<string, PluginSchema>;

/** In execution order. */
const PHASES = ["connect", "pre_auth", "auth", "access", "request", "response", "log"];
type Phased = Pick<PluginSchema, "phases">;

const firstPhase = (schema: Phased | undefined): number =>
  PHASES.findIndex((phase) => schema?.phases.includes(phase) ?? false);

/** A number in execution order: by the first phase, then by descending priority. */
export const orderKey = (plugin: Instance, schemas: Schemas): number => {
  const schema = schemas.get(plugin.name);
  const phase = firstPhase(schema);
  // Responses pass in reverse order.
  const sign = PHASES[phase] === "response" ? 1 : -1;
  return phase * 1e6 + sign * priorityOf(plugin, schema);
};

/** Execution order of instances. */
const byOrder =
  (schemas: Schemas) =>
  (one: Instance, other: Instance): number =>
    orderKey(one, schemas) - orderKey(other, schemas) ||
    one.name.localeCompare(other.name) ||
    rankOf(one) - rankOf(other);

/** Whether a request can pass both: of one plugin, only the instance with the most specific scope runs. */
const canMeet = (one: Instance, other: Instance): boolean =>
  one.name !== other.name &&
  (one.stream_route_id === null) === (other.stream_route_id === null) &&
  scopeFields.every(
    (field) => one[field] === null || other[field] === null || one[field] === other[field],
  );

/** `3rd of 5, after rate-limit`; among the enabled plugins that can run in the same request. */
export function placeOf(plugin: Instance, all: readonly Instance[], schemas: Schemas): string {
  const compare = byOrder(schemas);
  const others = all.filter((other) => other.enabled && canMeet(plugin, other));
  const names = new Set(others.map(({ name }) => name));
  const earlier = others.filter((other) => compare(other, plugin) < 0);
  const before = new Set(earlier.map(({ name }) => name));
  if (names.size === 0) return "alone";
  const place = `${ordinal(before.size + 1)} of ${names.size + 1}`;
  const last = earlier.reduce<Instance | undefined>(
    (best, other) => (best === undefined || compare(best, other) <= 0 ? other : best),
    undefined,
  );
  return last === undefined ? place : `${place}, after ${last.label ?? last.name}`;
}

/** `Runs after cors and before rate-limit`: the default among the plugins that share its first phase. */
export function defaultPlace(schema: PluginSchema, schemas: Schemas): string {
  const phase = firstPhase(schema);
  const same = [...schemas.values()]
    .filter((other) => firstPhase(other) === phase)
    .toSorted((one, other) => other.order - one.order || one.name.localeCompare(other.name));
  if (PHASES[phase] === "response") same.reverse();
  const index = same.findIndex(({ name }) => name === schema.name);
  const parts = [
    ...(index > 0 ? [`after ${same[index - 1]?.name}`] : []),
    ...(index < same.length - 1 ? [`before ${same[index + 1]?.name}`] : []),
  ];
  return parts.length === 0 ? "Runs alone in its phase" : `Runs ${parts.join(" and ")}`;
}

const rules = new Intl.PluralRules("en", { type: "ordinal" });
const suffixes: Readonly<Record<string, string>> = { one: "st", two: "nd", few: "rd" };

const ordinal = (count: number): string => `${count}${suffixes[rules.select(count)] ?? "th"}`;
