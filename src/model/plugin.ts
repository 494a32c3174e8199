// An instance of a plugin: which one, where it applies, with which configuration; knows no plugin.
import { type Static, Type as t } from "@sinclair/typebox";
import { condition } from "./condition.ts";
import { destination } from "./destination.ts";
import { ALL_KEPT, flag, type Identity, labels, name, nullable, oneOf } from "./fields.ts";

const reference = (of: string) =>
  nullable(
    t.String({ minLength: 1, maxLength: 128 }),
    `Only traffic of this ${of}: its id or name; null: whatever it is`,
  );

export const pluginInput = t.Object(
  {
    name: destination(
      t.String({
        pattern: "^[a-z][a-z0-9-]{0,63}$",
        errorMessage: "must be the name of a plugin, such as key-auth",
        description: "Which plugin, see GET /plugins/schemas",
      }),
    ),
    label: nullable(name("Unique name of this instance"), "Unique name of this instance"),
    service_id: reference("service"),
    route_id: reference("route"),
    consumer_id: reference("consumer"),
    stream_route_id: reference("stream route"),
    config: t.Record(t.String(), t.Unknown(), {
      default: {},
      description: `The plugin's own settings, see its schema. ${ALL_KEPT}`,
    }),
    priority: nullable(
      t.Integer({ minimum: -1_000_000, maximum: 1_000_000 }),
      "Place in the order within a phase, higher first; null: the plugin's own",
    ),
    when: nullable(condition, "Only for requests that fit; null: for all"),
    on_error: nullable(
      oneOf(["open", "closed"], { description: "open: go on without it; closed: refuse" }),
      "What happens to a request when the plugin fails; null: as the plugin is made",
    ),
    enabled: flag(true, "Whether it runs"),
    ...labels,
  },
  { additionalProperties: false, title: "Plugin" },
);

export type PluginInput = Static<typeof pluginInput>;

/** As it is stored: references are ids, secrets in `config` are `{"sealed": ...}` or `{"$secret": ...}`. */
export type Plugin = Readonly<PluginInput> & Identity;

/** Of a plugin, the fields that say where it applies. */
export type PluginScope = Pick<
  Plugin,
  "service_id" | "route_id" | "consumer_id" | "stream_route_id"
>;

/** Words for the places that a plugin can be put to. */
export const scopeNames = [
  "global",
  "service",
  "route",
  "consumer",
  "consumer_route",
  "consumer_service",
  "stream_route",
] as const;
export type ScopeName = (typeof scopeNames)[number];

/** Where an instance applies; null when its references do not go together. */
export function scopeOf(plugin: PluginScope): ScopeName | null {
  const { service_id, route_id, consumer_id, stream_route_id } = plugin;
  if (stream_route_id !== null)
    return service_id === null && route_id === null && consumer_id === null ? "stream_route" : null;
  if (service_id !== null && route_id !== null) return null;
  if (consumer_id !== null) {
    if (route_id !== null) return "consumer_route";
    return service_id === null ? "consumer" : "consumer_service";
  }
  if (route_id !== null) return "route";
  return service_id === null ? "global" : "service";
}
