// Converts hosts of Nginx Proxy Manager without a target: redirections, dead hosts and the default site.
import type { Members } from "../members.ts";
import { readAdvanced, type ResponsePlugin } from "./advanced.ts";
import { addHsts, omitSettings, redirectOf, reportIgnored, securityOf } from "./host-parts.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, isOn, isSet, omitState, rowsOf, timesOf } from "./rows.ts";
import { storedNameOf } from "../../model/host-name.ts";

/** The source has no variables here: escape the `$`. */
const withoutVariables = (text: string) => text.replaceAll("$", "%24");

type RoutedResponse = ResponsePlugin & { readonly routeId: string };

export function addRedirections(context: NpmContext): void {
  for (const members of rowsOf("redirection_host", context)) {
    const routeId = addRoute(members, "redirection host", context);
    const keeps = isSet(members, "preserve_path");
    const scheme = members.text("forward_scheme") ?? "auto";
    const isSame = scheme === "auto" || scheme === "$scheme";
    const domain = members.text("forward_domain_name") ?? "";
    respond(
      members,
      {
        routeId,
        name: "redirect",
        config: {
          to: `${isSame ? "${request.scheme}" : withoutVariables(scheme)}://${withoutVariables(domain)}`,
          status: members.number("forward_http_code") ?? 302,
          keep_path: keeps,
          keep_query: keeps,
        },
      },
      context,
    );
  }
}

export function addDeadHosts(context: NpmContext): void {
  for (const members of rowsOf("dead_host", context)) {
    const routeId = addRoute(members, "dead host", context);
    respond(members, { routeId, name: "respond", config: { status: 404 } }, context);
  }
}

function addRoute(members: Members, kind: string, context: NpmContext): string {
  const { output } = context;
  const domains = members.texts("domain_names").map(storedNameOf);
  members.setLabel(`${kind} "${domains.join(", ")}"`);
  omitState(members);
  omitSettings(members, context);
  // It forwards no request that could harm.
  members.raw("block_exploits");
  const security = securityOf(members, domains, context);
  const key = `${kind} ${idOf(members)}`;
  const enabled = isOn(members);
  const routeId = output.add(
    "routes",
    // Without it, a wildcard host would match these requests.
    { key, label: members.label, protects: enabled },
    {
      name: output.name("routes", domains[0] ?? key),
      hosts: [...new Set(domains.map((domain) => domain.toLowerCase()))],
      enabled,
      ...redirectOf(security, { of: members.label, status: 301 }, context),
      ...timesOf(members),
    },
  );
  addHsts(security, { routeId, of: members.label }, context);
  const advanced = readAdvanced(members.text("advanced_config") ?? "");
  reportIgnored(advanced, members.label, context);
  for (const { path } of advanced.locations)
    output.report.omitted(
      `location ${path} of ${members.label}`,
      "only proxy hosts have locations",
    );
  if (advanced.mayDeny || advanced.locations.length > 0)
    output.loseProtection({
      scope: { route_id: routeId },
      what: `a directive of nginx of ${members.label}`,
    });
  return routeId;
}

function respond(
  members: Members,
  { routeId, ...plugin }: RoutedResponse,
  { output }: NpmContext,
): void {
  const what = `response of ${members.label}`;
  output.plugin({ ...plugin, key: routeId, what, scope: { route_id: routeId } });
  output.report.imported(members.label, `became a route with the plugin ${plugin.name}`);
}

/** Converts the response for unknown hosts. */
export function addDefaultSite(context: NpmContext): void {
  for (const members of rowsOf("setting", context)) {
    const id = members.text("id") ?? "";
    members.setLabel(`setting "${id}"`);
    for (const column of ["name", "description"]) members.raw(column);
    const value = members.text("value");
    if (id !== "default-site") members.drop("the import does not support it");
    else addSite(value ?? "", members, context);
  }
}

function addSite(value: string, members: Members, context: NpmContext): void {
  const meta = members.object("meta") ?? members.empty("meta");
  const redirect = meta.text("redirect");
  const html = meta.text("html");
  if (value === "redirect" && redirect !== null) {
    const config = {
      to: withoutVariables(redirect),
      status: 302,
      keep_path: false,
      keep_query: false,
    };
    addCatchAll(members, { name: "redirect", config }, context);
  } else if (value === "html" && html !== null) {
    const headers = { "Content-Type": "text/html; charset=utf-8" };
    addCatchAll(
      members,
      { name: "respond", config: { status: 200, headers, body: html } },
      context,
    );
  } else if (value === "404" || value === "congratulations")
    members.changed("value", "unknown hosts get 404, see settings.default_site");
  else members.drop("set settings.default_site");
}

/** Adds a route instead of settings: importing settings would reset all others. */
function addCatchAll(members: Members, plugin: ResponsePlugin, context: NpmContext): void {
  const { output } = context;
  const name = output.name("routes", "default site");
  const routeId = output.add(
    "routes",
    { key: "default site", label: members.label },
    { name, priority: -1_000_000 },
  );
  respond(members, { routeId, ...plugin }, context);
}
