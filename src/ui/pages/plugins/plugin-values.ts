// The fields of the form of a plugin instance, and what may be put where; draws nothing.
import type { Read, Schemas, Write } from "../../api/resources.ts";

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

const defaults: Omit<PluginValues, "name"> = {
  ...{ label: null, service_id: null, route_id: null, consumer_id: null, stream_route_id: null },
  ...{ config: {}, priority: null, when: null, on_error: null, enabled: true, tags: [] },
  description: "",
};

/** Fields of an instance; `name` and `scope` are those of a new one. */
export const toValues =
  (name: string, scope: Partial<PluginValues>) =>
  (plugin: Partial<Instance>): PluginValues => {
    const names = Object.keys(defaults) as (keyof typeof defaults)[];
    const own = names.filter((field) => plugin[field] !== undefined);
    return {
      ...defaults,
      ...scope,
      name: plugin.name ?? name,
      ...Object.fromEntries(own.map((field) => [field, plugin[field]])),
    };
  };

export function toBody(values: PluginValues): Write<"plugins"> {
  const { when, label, ...rest } = values;
  // An empty condition always holds, and says no more than none.
  const isAlways = when === null || Object.keys(when).length === 0;
  return {
    ...rest,
    label: label?.trim() === "" ? null : label,
    when: isAlways ? null : when,
  } as Write<"plugins">;
}

/** Where an instance may be put, in the words of the API. */
export interface ScopeFacts {
  readonly value: string;
  readonly label: string;
  readonly text: string;
  /** What has to be chosen. */
  readonly fields: readonly ScopeField[];
}

export const scopes: readonly ScopeFacts[] = [
  { value: "global", label: "Everything", text: "All HTTP traffic of the gateway", fields: [] },
  {
    ...{ value: "service", label: "A service", fields: ["service_id"] },
    text: "Whatever goes to one application",
  },
  {
    ...{ value: "route", label: "A route", fields: ["route_id"] },
    text: "Requests that one route takes",
  },
  {
    ...{ value: "consumer", label: "A consumer", fields: ["consumer_id"] },
    text: "Whatever one client asks for",
  },
  {
    ...{ value: "consumer_route", label: "A consumer on a route" },
    ...{ fields: ["consumer_id", "route_id"], text: "One client, and only on one route" },
  },
  {
    ...{ value: "consumer_service", label: "A consumer on a service" },
    ...{ fields: ["consumer_id", "service_id"], text: "One client, and only for one application" },
  },
  {
    ...{ value: "stream_route", label: "A stream route", fields: ["stream_route_id"] },
    text: "Connections of TCP, TLS or UDP",
  },
];

/** The place of an instance, as `scopes` call it. */
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
    ...{ group: "authentication", title: "Sign-in" },
    text: "Find out who a client is: keys, passwords, tokens, certificates, single sign-on.",
  },
  {
    ...{ group: "access", title: "Access" },
    text: "Keep out what should not get in: networks, groups, bots, attacks, requests that do not fit.",
  },
  {
    ...{ group: "traffic", title: "Traffic" },
    text: "Limit, divide, copy and answer requests.",
  },
  {
    ...{ group: "content", title: "Content" },
    text: "Change requests and answers: headers, caching, compression, pages.",
  },
  {
    ...{ group: "observability", title: "Observing" },
    text: "Write down and trace what happens.",
  },
];

/** In the most special place first, as the gateway chooses among several of one plugin. */
const RANKS = [
  ...["consumer_route", "consumer_service", "consumer", "route", "service", "global"],
  "stream_route",
];

export const rankOf = (plugin: Pick<Instance, ScopeField>): number =>
  RANKS.indexOf(scopeOf(plugin));

/** Higher runs earlier within a moment of a request. */
export const placeOf = (plugin: Instance, schema: PluginSchema | undefined): number =>
  plugin.priority ?? schema?.order ?? 0;
