// What Nginx Proxy Manager answers by itself: redirections, hosts that are gone, and the site for everything else.
import type { Members } from "../members.ts";
import type { PluginDraft } from "../output.ts";
import type { NpmContext } from "./npm.ts";
import { addHsts, leaveOutAdvanced, securityOf } from "./proxy-hosts.ts";
import { idOf, isOn, isSet, leaveOutState, rowsOf, timesOf } from "./rows.ts";

/** What would be a variable here meant itself there: nothing may be put in its place. */
const withoutVariables = (text: string) => text.replaceAll("$", "%24");

type Answered = Answer & { readonly routeId: string };
type Answer = Pick<PluginDraft, "name" | "config">;

export function addRedirections(context: NpmContext): void {
  for (const members of rowsOf("redirection_host", context)) {
    const routeId = addRoute(members, "redirection host", context);
    const keeps = isSet(members, "preserve_path");
    const scheme = members.text("forward_scheme") ?? "auto";
    const isSame = scheme === "auto" || scheme === "$scheme";
    const domain = members.text("forward_domain_name") ?? "";
    answer(
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
    answer(members, { routeId, name: "respond", config: { status: 404 } }, context);
  }
}

function addRoute(members: Members, kind: string, context: NpmContext): string {
  const { output } = context;
  const domains = members.texts("domain_names");
  members.call(`${kind} "${domains.join(", ")}"`);
  leaveOutState(members);
  members.leaveOut("http2_support", "listeners say whether they offer HTTP/2", 1);
  members.leaveOut("block_exploits", "nothing of the request goes anywhere", 0);
  members.leaveOut("trust_forwarded_proto", "name the proxy in trusted_proxies", 0);
  const { fields, hasHsts, hasSubdomains } = securityOf(members, context);
  const key = `${kind} ${idOf(members)}`;
  const enabled = isOn(members);
  const routeId = output.add(
    "routes",
    // It serves nothing, and without it a host with a wildcard may.
    { key, label: members.label, protects: enabled },
    {
      name: output.name("routes", domains[0] ?? key),
      hosts: [...new Set(domains.map((domain) => domain.toLowerCase()))],
      enabled,
      ...fields,
      ...timesOf(members),
    },
  );
  if (hasHsts) addHsts({ hasSubdomains }, { routeId, of: members.label }, context);
  leaveOutAdvanced(members, routeId, context);
  return routeId;
}

function answer(members: Members, { routeId, ...plugin }: Answered, { output }: NpmContext): void {
  const what = `answer of ${members.label}`;
  output.plugin({ ...plugin, key: routeId, what, scope: { route_id: routeId } });
  output.report.carried(members.label, `became a route with the plugin ${plugin.name}`);
}

/** What hosts get that nobody knows. */
export function addDefaultSite(context: NpmContext): void {
  for (const members of rowsOf("setting", context)) {
    const id = members.text("id") ?? "";
    members.call(`setting "${id}"`);
    for (const column of ["name", "description"]) members.raw(column);
    const value = members.text("value");
    if (id !== "default-site") members.drop("this import does not know it");
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
    members.changed("value", "hosts that no route takes get 404, see settings.default_site");
  else members.drop("set settings.default_site");
}

/** A route and not the settings: an import of settings would reset all that the file says nothing about. */
function addCatchAll(members: Members, plugin: Answer, context: NpmContext): void {
  const { output } = context;
  const name = output.name("routes", "default site");
  const routeId = output.add(
    "routes",
    { key: "default site", label: members.label },
    { name, priority: -1_000_000 },
  );
  answer(members, { routeId, ...plugin }, context);
}
