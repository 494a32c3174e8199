// An instance of a plugin: which one, where it applies, with which configuration; knows no plugin.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo } from "./resource.ts";
import { condition } from "./condition.ts";
import { destination } from "./destination.ts";
import { ALL_KEPT, flag, type Identity, labels, name, nullable, oneOf } from "./fields.ts";

const scope = (of: string) =>
  nullable(
    refersTo(`${of.replace(" ", "_")}s`, t.String({ minLength: 1, maxLength: 128 }), {
      isOwner: true,
      isFilter: true,
    }),
    `Only traffic of this ${of}: ID or name; null: any`,
  );

export const pluginInput = t.Object(
  {
    name: destination(
      t.String({
        pattern: "^[a-z][a-z0-9-]{0,63}$",
        errorMessage: "must be the name of a plugin, such as key-auth",
        description: "Name of the plugin, see GET /plugins/schemas",
      }),
    ),
    label: nullable(name("Unique name of this instance"), "Unique name of this instance", {
      help: "Distinguishes several instances",
    }),
    service_id: scope("service"),
    route_id: scope("route"),
    consumer_id: scope("consumer"),
    stream_route_id: scope("stream route"),
    config: t.Record(t.String(), t.Unknown(), {
      default: {},
      description: `The plugin's own settings, see its schema. ${ALL_KEPT}`,
    }),
    priority: nullable(
      t.Integer({ minimum: -1_000_000, maximum: 1_000_000 }),
      "Priority within a phase, higher runs first; null: the plugin's default",
      { help: "Higher runs earlier in each phase" },
    ),
    when: nullable(condition, "Only for requests that match; null: for all"),
    on_error: nullable(
      oneOf(["open", "closed"], {
        description: "open: continue without the plugin; closed: reject the request",
      }),
      "What happens to a request when the plugin fails; null: the plugin's default",
      {
        help: "Behavior when the plugin fails, for example because its backend is down",
        options: {
          null: "Default of the plugin",
          open: "Continue without it",
          closed: "Reject the request",
        },
      },
    ),
    enabled: flag(true, "Whether the plugin runs", {
      help: "Off: the plugin does not run",
      order: -1,
    }),
    ...labels,
  },
  { additionalProperties: false, title: "Plugin" },
);

export type PluginInput = Static<typeof pluginInput>;

/** As it is stored: references are ids, secrets in `config` are `{"sealed": ...}` or `{"$secret": ...}`. */
export type Plugin = Readonly<PluginInput> & Identity;

/** The fields of a plugin that define its scope. */
export type PluginScope = Pick<
  Plugin,
  "service_id" | "route_id" | "consumer_id" | "stream_route_id"
>;

/** Names of the scopes of a plugin. */
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

/** The scope of an instance; null when its references do not combine. */
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

export const plugins = defineResource<Plugin>({
  word: "plugin",
  input: pluginInput,
  nameField: "label",
  nameWord: "label",
  label: ({ label, name: of }) => label ?? of,
  identifiedBy: ["label", "name", "service_id", "route_id", "consumer_id", "stream_route_id"],
  columns: { label: { of: ({ label }) => label, isUnique: true, isNullable: true } },
  holdsSecrets: true,
  sendsSecrets: true,
  configKind: "name",
  // Only a plugin's own schema tells which of its texts are ids.
  mentions: ({ config }, { collection, id }) =>
    (collection === "services" || collection === "consumers") &&
    JSON.stringify(config).includes(id),
  api: {
    tag: "Plugins",
    schema: "Plugin",
    note: "`config` without secrets, but with references to named secrets",
  },
});
