// Converts plugins of Kong with their scopes, and reports those without an equivalent.
import { invalid } from "../../model/error.ts";
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import type { OutputScope } from "../output.ts";
import { commonOf, type KongContext, referenceOf } from "./context.ts";
import { authentication } from "./plugins-authentication.ts";
import { logging } from "./plugins-logging.ts";
import { openidConnect } from "./plugins-oidc.ts";
import { requestValidator } from "./plugins-validation.ts";
import { isTransformer, matters } from "./protections.ts";
import { traffic } from "./plugins-traffic.ts";
import { transformation } from "./plugins-transformation.ts";

/** A plugin and its scope. */
export interface ScopedPlugin {
  readonly members: Members;
  /** `route "shop"` */
  readonly owner: string;
  readonly scope: OutputScope;
}

/** Converts a configuration; null, with a report entry, when it has no equivalent. */
export type PluginConverter = (
  config: Members,
  context: KongContext,
) => { readonly name: string; readonly config: Document } | null;

const converters: Readonly<Record<string, PluginConverter>> = {
  ...authentication,
  ...traffic,
  ...transformation,
  ...logging,
  "openid-connect": openidConnect,
  "request-validator": requestValidator,
};

/** Adds the nested plugins of services, routes and consumers, and those of the list `plugins`. */
export function addPlugins(context: KongContext): void {
  for (const plugin of context.plugins) addPlugin(plugin, context);
  for (const members of context.root.objects("plugins"))
    for (const plugin of scopesOf(members, context)) addPlugin(plugin, context);
  const { root } = context;
  const inside = root.objects("consumer_groups").flatMap((group) => group.objects("plugins"));
  for (const plugin of [...inside, ...root.objects("consumer_group_plugins")])
    loseGroup(plugin, context);
}

/** Disables all consumers in groups when a plugin of a group denies access. */
function loseGroup(members: Members, { output, grouped }: KongContext): void {
  const name = members.text("name") ?? "";
  if (!matters(name) || members.flag("enabled") === false) return;
  for (const consumer_id of grouped)
    output.loseProtection({ scope: { consumer_id }, what: `plugin "${name}" of a consumer group` });
}

/** Several when the route was split. */
function scopesOf(members: Members, context: KongContext): readonly ScopedPlugin[] {
  const owners: string[] = [];
  const found: Record<string, string | null> = {};
  const route = referenceOf(members, "route");
  const streams = route === null ? undefined : context.ids.get(`streams ${route}`);
  if (streams !== undefined)
    return streams
      .split(" ")
      .map((id) => ({ members, owner: `route "${route}"`, scope: { stream_route_id: id } }));
  for (const kind of ["service", "route", "consumer"] as const) {
    const word = referenceOf(members, kind);
    const id = word === null ? null : (context.ids.get(`${kind}s ${word}`) ?? null);
    if (word !== null && id === null) {
      members.setLabel(`plugin "${members.text("name") ?? ""}" of ${kind} "${word}"`);
      members.drop(`its ${kind} was not imported`);
      return [];
    }
    if (word !== null) owners.push(`${kind} "${word}"`);
    found[`${kind}_id`] = id;
  }
  const group = referenceOf(members, "consumer_group");
  if (group !== null) {
    members.setLabel(`plugin "${members.text("name") ?? ""}" of consumer group "${group}"`);
    members.drop("consumer groups cannot have plugins");
    loseGroup(members, context);
    return [];
  }
  const { service_id = null, route_id = null, consumer_id = null } = found;
  const owner = owners.join(" and ");
  if (route_id === null) return [{ members, owner, scope: { service_id, consumer_id } }];
  const parts = (context.ids.get(`parts ${route}`) ?? "").split(" ").filter((id) => id !== "");
  return [route_id, ...parts].map((id) => ({
    members,
    owner,
    scope: { route_id: id, consumer_id },
  }));
}

function addPlugin({ members, owner, scope }: ScopedPlugin, context: KongContext): void {
  const { output } = context;
  const name = members.text("name");
  if (name === null) throw invalid(`${members.path}.name`, "is required");
  const what = `plugin "${name}"${owner === "" ? "" : ` of ${owner}`}`;
  members.setLabel(what);
  const enabled = members.flag("enabled") ?? true;
  members.raw("id");
  members.omit("protocols", "a plugin runs for every request that its route matches", [
    ...["grpc", "grpcs", "http", "https"],
  ]);
  members.omit("ordering", "set the priority of the plugin instead");
  members.omit("instance_name", "give the plugin a label instead");
  members.omit("condition", "the plugin applies to all requests of its scope");
  members.omit("expressions", "its settings have their usual values");
  members.omit("partials", "write the settings into the plugin");
  if (members.has("condition") && isTransformer(name) && enabled)
    output.loseProtection({ scope, what: `the condition of ${what}` });
  members.omit("run_on", "the gateway has one data plane", "first");
  const { tags } = commonOf(members);
  const convert = Object.hasOwn(converters, name) ? converters[name] : undefined;
  const protects = matters(name);
  const config = members.object("config") ?? members.empty("config");
  const isShared = members.has("_config");
  if (isShared) members.omit("_config", "write the settings into the plugin");
  const converted = isShared ? null : (convert?.(config, context) ?? null);
  if (converted === null) {
    if (convert === undefined) members.drop("this gateway has no equivalent");
    // One report entry for the whole plugin is enough.
    config.ignoreRest();
    if (protects && enabled) output.loseProtection({ scope, what });
    return;
  }
  // The unknown field may be the one that denies access.
  if (protects && enabled && config.hasUnknown()) output.loseProtection({ scope, what });
  const key = `${name} ${members.text("id") ?? ""} ${members.path} ${Object.values(scope).join(" ")}`;
  const draft = { scope, what, key, protects, enabled, tags: tags as string[] };
  output.plugin({ ...converted, ...draft });
  // The plugin redirect passes requests that are already at their destination to the service; Kong redirects them again.
  if (converted.name === "redirect")
    output.plugin({
      ...draft,
      name: "respond",
      config: { status: 403 },
      key: `${key} behind`,
      what: `requests at the destination of ${what}`,
    });
}
