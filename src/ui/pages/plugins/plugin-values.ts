// The fields of the plugin form, and the scopes; renders nothing.
import { formSchemaOf } from "../../../model/form-schema.ts" with { type: "macro" };
import type { Read, Schemas, Write } from "../../api/resources.ts";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { withDefaults } from "../../parts/schema/values.ts";

export type PluginSchema = Schemas["PluginSchema"];
type Instance = Read<"plugins">;

export interface PluginValues extends Pick<
  Instance,
  | "label"
  | "service_id"
  | "route_id"
  | "consumer_id"
  | "stream_route_id"
  | "config"
  | "priority"
  | "when"
  | "on_error"
  | "enabled"
  | "tags"
  | "description"
> {
  readonly name: string;
}

export type ScopeField = "service_id" | "route_id" | "consumer_id" | "stream_route_id";

export const scopeFields: readonly ScopeField[] = [
  ...(["service_id", "route_id", "consumer_id", "stream_route_id"] as const),
];

/** The fields that every plugin has. */
export const pluginSchema = formSchemaOf("plugins") as JsonSchema;

/** Fields of an instance; `name` and `scope` apply to a new one. */
export const toValues =
  (name: string, scope: Partial<PluginValues>) =>
  (plugin: Partial<Instance>): PluginValues =>
    withDefaults(pluginSchema, { name, ...scope, ...plugin }) as unknown as PluginValues;

export function toBody(values: PluginValues): Write<"plugins"> {
  const { when, label, ...rest } = values;
  // An empty condition always matches: it equals none.
  const isAlways = when === null || Object.keys(when).length === 0;
  return {
    ...rest,
    label: label?.trim() === "" ? null : label,
    when: isAlways ? null : when,
  } as Write<"plugins">;
}

/** A scope, by the API's name. */
export interface ScopeFacts {
  readonly value: string;
  readonly label: string;
  readonly text: string;
  /** The ids to choose. */
  readonly fields: readonly ScopeField[];
}

export const scopes: readonly ScopeFacts[] = [
  { value: "global", label: "Global", text: "All HTTP traffic of the gateway", fields: [] },
  {
    value: "service",
    label: "Service",
    fields: ["service_id"],
    text: "Requests to one service",
  },
  {
    value: "route",
    label: "Route",
    fields: ["route_id"],
    text: "Requests that match one route",
  },
  {
    value: "consumer",
    label: "Consumer",
    fields: ["consumer_id"],
    text: "Requests of one consumer",
  },
  {
    value: "consumer_route",
    label: "Consumer and route",
    fields: ["consumer_id", "route_id"],
    text: "Requests of one consumer to one route",
  },
  {
    value: "consumer_service",
    label: "Consumer and service",
    fields: ["consumer_id", "service_id"],
    text: "Requests of one consumer to one service",
  },
  {
    value: "stream_route",
    label: "Stream route",
    fields: ["stream_route_id"],
    text: "TCP, TLS or UDP connections",
  },
];

/** The scope of an instance, by its name in `scopes`. */
export function scopeOf(plugin: Pick<Instance, ScopeField>): string {
  const set = scopeFields.filter((field) => plugin[field] !== null).toSorted();
  const fits = ({ fields }: ScopeFacts) => fields.toSorted().join() === set.join();
  return scopes.find(fits)?.value ?? "global";
}

export interface Purpose {
  readonly group: string;
  readonly title: string;
  readonly text: string;
}

/** Groups of plugins as the gallery shows them. */
export const purposes: readonly Purpose[] = [
  {
    group: "authentication",
    title: "Authentication",
    text: "Identify clients: keys, passwords, tokens, certificates, single sign-on.",
  },
  {
    group: "access",
    title: "Access",
    text: "Allow or deny requests: networks, groups, bots, attacks, invalid requests.",
  },
  {
    group: "traffic",
    title: "Traffic",
    text: "Limit, split, mirror and respond to requests.",
  },
  {
    group: "content",
    title: "Content",
    text: "Change requests and responses: headers, caching, compression, pages.",
  },
  {
    group: "observability",
    title: "Observability",
    text: "Logs, metrics and traces.",
  },
];

/** Most specific scope first, as the gateway selects among instances of one plugin. */
const RANKS = [
  ...["consumer_route", "consumer_service", "consumer", "route", "service", "global"],
  "stream_route",
];

export const rankOf = (plugin: Pick<Instance, ScopeField>): number =>
  RANKS.indexOf(scopeOf(plugin));

/** Higher runs earlier within a phase. */
export const priorityOf = (plugin: Instance, schema: PluginSchema | undefined): number =>
  plugin.priority ?? schema?.order ?? 0;
