// Plugins of Kong wherever they stand: where they apply, and what is done with those that the gateway has not.
import { invalid } from "../../../model/error.ts";
import type { Document } from "../../body.ts";
import type { Members } from "../members.ts";
import type { MadeScope } from "../output.ts";
import { commonOf, type KongContext, referenceOf } from "./context.ts";
import { authentication } from "./plugins-authentication.ts";
import { logging } from "./plugins-logging.ts";
import { matters } from "./protections.ts";
import { traffic } from "./plugins-traffic.ts";
import { transformation } from "./plugins-transformation.ts";

/** A plugin, and the object of the document that it stands in. */
export interface ScopedPlugin {
  readonly members: Members;
  /** `route "shop"` */
  readonly owner: string;
  readonly scope: MadeScope;
}

/** What becomes of a configuration; null: nothing, which the converter has reported. */
export type PluginConverter = (
  config: Members,
  context: KongContext,
) => { readonly name: string; readonly config: Document } | null;

const converters: Readonly<Record<string, PluginConverter>> = {
  ...authentication,
  ...traffic,
  ...transformation,
  ...logging,
};

/** Those that were found inside of services, routes and consumers, and those of the file itself. */
export function addPlugins(context: KongContext): void {
  for (const plugin of context.plugins) addPlugin(plugin, context);
  for (const members of context.root.objects("plugins"))
    for (const plugin of scopesOf(members, context)) addPlugin(plugin, context);
  const { root } = context;
  const inside = root.objects("consumer_groups").flatMap((group) => group.objects("plugins"));
  for (const plugin of [...inside, ...root.objects("consumer_group_plugins")])
    loseGroup(plugin, context);
}

/** What a plugin keeps from groups of consumers, no consumer in a group gets. */
function loseGroup(members: Members, { output, grouped }: KongContext): void {
  const name = members.text("name") ?? "";
  if (!matters(name) || members.flag("enabled") === false) return;
  for (const consumer_id of grouped)
    output.lose({ scope: { consumer_id }, what: `plugin "${name}" of a consumer group` });
}

/** Several when the route became several. */
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
      members.call(`plugin "${members.text("name") ?? ""}" of ${kind} "${word}"`);
      members.drop(`its ${kind} was not carried over`);
      return [];
    }
    if (word !== null) owners.push(`${kind} "${word}"`);
    found[`${kind}_id`] = id;
  }
  const group = referenceOf(members, "consumer_group");
  if (group !== null) {
    members.call(`plugin "${members.text("name") ?? ""}" of consumer group "${group}"`);
    members.drop("there are no plugins for groups of consumers");
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
  members.call(what);
  const enabled = members.flag("enabled") ?? true;
  members.raw("id");
  members.leaveOut("protocols", "a plugin runs for all that its route takes", [
    ...["grpc", "grpcs", "http", "https"],
  ]);
  members.leaveOut("ordering", "set the priority of the plugin instead");
  members.leaveOut("instance_name", "give the plugin a label instead");
  members.leaveOut("run_on", "there is one gateway", "first");
  const { tags } = commonOf(members);
  const convert = Object.hasOwn(converters, name) ? converters[name] : undefined;
  const protects = matters(name);
  const config = members.object("config") ?? members.empty("config");
  const isShared = members.has("_config");
  if (isShared) members.leaveOut("_config", "write the settings into the plugin");
  const converted = isShared ? null : (convert?.(config, context) ?? null);
  if (converted === null) {
    if (convert === undefined) members.drop("this gateway has nothing like it");
    // Its parts were looked at in vain.
    config.ignoreRest();
    if (protects && enabled) output.lose({ scope, what });
    return;
  }
  // What it keeps out may be said in a field that nobody knows here.
  if (protects && enabled && config.hasUnknown()) output.lose({ scope, what });
  const key = `${name} ${members.text("id") ?? ""} ${members.path} ${Object.values(scope).join(" ")}`;
  const draft = { scope, what, key, protects, enabled, tags: tags as string[] };
  output.plugin({ ...converted, ...draft });
}
