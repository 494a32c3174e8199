// Routes of Kong: which requests they take, in the order in which Kong tries them; knows no plugin.
import type { Members } from "../members.ts";
import { commonOf, type KongContext, referenceOf, remember } from "./context.ts";
import { rankRoutes } from "./route-order.ts";
import { isRegexPath, type PathParts, prefixOf, splitPaths, stripRegex } from "./route-paths.ts";
import type { KongService } from "./services.ts";
import { addStreamRoute, isStreamRoute } from "./stream-routes.ts";

interface Source {
  readonly members: Members;
  readonly service: KongService | null;
}

/** Routes, inside of services and beside them. */
export function addRoutes(context: KongContext, services: readonly KongService[]): void {
  const byId = new Map(services.map((service) => [service.id, service]));
  const sources: Source[] = services.flatMap((service) =>
    service.members.objects("routes").map((members) => ({ members, service })),
  );
  for (const members of context.root.objects("routes")) {
    const wanted = referenceOf(members, "service");
    const id = wanted === null ? null : (context.ids.get(`services ${wanted}`) ?? null);
    const service = id === null ? null : (byId.get(id) ?? null);
    if (wanted !== null && service === null) members.drop("its service was not carried over");
    else sources.push({ members, service });
  }
  const routes = sources.flatMap((source) => readRoute(source, context) ?? []);
  const ranks = rankRoutes(routes.map(({ order }) => order));
  for (const [index, route] of routes.entries())
    for (const part of route.parts) addPart(route, { part, priority: ranks[index] ?? 0, context });
}

type HttpRoute = NonNullable<ReturnType<typeof readRoute>>;

function readRoute({ members, service }: Source, context: KongContext) {
  const id = members.text("id");
  const name = members.text("name");
  const fallback = `${service?.name ?? "route"} ${members.path.replaceAll(/[^0-9]+/g, " ").trim()}`;
  members.call(`route "${name ?? `${fallback} ${members.texts("paths").join(" ")}`.trim()}"`);
  if (members.text("expression") !== null) {
    members.drop("routes with expressions are not carried over: write its conditions as fields");
    return null;
  }
  const words = [id, name];
  const key = id ?? name ?? `${service?.name ?? ""} ${members.path}`;
  const wanted = name ?? fallback;
  if (isStreamRoute(members)) return addStreamRoute(members, { context, service, key, wanted });
  const protocols = members.texts("protocols");
  if (protocols.some((protocol) => /^(grpc|ws)/.test(protocol)) || isForStreams(service)) {
    members.drop(`there are no routes with the protocols ${protocols.join(", ")}`);
    return null;
  }
  const { hosts, isLost } = hostsOf(members);
  if (isLost) {
    members.drop("none of its hosts could be carried over");
    return null;
  }
  const paths = members.texts("paths");
  const headers = headersOf(members);
  const methods = members.texts("methods");
  const strip = members.flag("strip_path") ?? true;
  leaveOutRest(members);
  const plain = paths.filter((path) => !isRegexPath(path, context.format));
  if (plain.some((path) => prefixOf(path) !== "/"))
    members.changed("paths", "a path matches whole segments: /api takes /api/x, but not /apix");
  const rules = [hosts, headers, paths, methods].filter((list) => list.length > 0).length;
  const order = {
    rules,
    hasRegex: plain.length < paths.length,
    hasPlainHosts: hosts.length > 0 && !hosts.some((host) => host.startsWith("*")),
    headers: headers.length,
    regexPriority: members.number("regex_priority") ?? 0,
    longest: Math.max(0, ...paths.map((path) => path.length)),
  };
  const fields = {
    ...{ service_id: service?.id ?? null, hosts, methods, headers },
    ...httpsOf(members),
    ...(members.flag("preserve_host") === true ? { preserve_host: true } : {}),
    ...commonOf(members),
  };
  const parts = splitPaths(paths, { strip, format: context.format });
  return { ...{ members, key, wanted, words, order, fields, parts, strip } };
}

const isForStreams = (service: KongService | null) =>
  service !== null && !service.protocol.startsWith("http");

function addPart(
  route: HttpRoute,
  { part, priority, context }: { part: PathParts; priority: number; context: KongContext },
): void {
  const { members, key, fields, parts, strip } = route;
  const index = parts.indexOf(part);
  const suffix = index === 0 ? "" : ` ${index + 1}`;
  const name = context.output.name("routes", `${route.wanted}${suffix}`);
  if (index === 0 && name !== route.wanted && route.words[1] !== null)
    members.changed("name", `became ${name}`);
  const target = { key: `${key}${suffix}`, label: `${members.label}${suffix}` };
  const id = context.output.add("routes", target, {
    ...fields,
    ...{ name, paths: part.paths, priority },
    ...(strip && part.regex === null ? { strip_path: part.paths.length > 0 } : {}),
    ...(strip && part.regex !== null ? { path_rewrite: stripRegex(part.regex) } : {}),
  });
  members.report.carried(target.label, `became the route ${name}`);
  if (index === 0) remember(context, { kind: "routes", words: route.words, id });
  const plugins = members.objects("plugins");
  for (const plugin of plugins)
    context.plugins.push({ members: plugin, owner: target.label, scope: { route_id: id } });
  if (index > 0)
    // Plugins beside the routes name the first part only.
    for (const word of route.words)
      if (word !== null)
        context.ids.set(`parts ${word}`, `${context.ids.get(`parts ${word}`) ?? ""} ${id}`.trim());
}

function hostsOf(members: Members) {
  const found = new Set<string>();
  const given = members.texts("hosts");
  const names = members.texts("snis");
  if (names.length > 0)
    members.changed("snis", given.length > 0 ? "the hosts decide" : "became hosts");
  const wanted = given.length > 0 ? given : names;
  for (const host of wanted) {
    const bare = host.replace(/:(\d+)$/, "").replace(/\.$/, "");
    if (bare !== host) members.changed("hosts", `${host} became ${bare}: every port counts`);
    if (bare.includes("*") && !/^\*\.[^*]+$/.test(bare))
      members.report.leftOut(`${members.label}: ${host}`, "only a * in front stands for names");
    else found.add(bare);
  }
  return { hosts: [...found], isLost: wanted.length > 0 && found.size === 0 };
}

/** By name, each with the values of which one is enough. */
function headersOf(members: Members) {
  const headers = members.object("headers");
  if (headers === null) return [];
  return headers.names.map((name) => {
    const values = headers.texts(name);
    const [first = ""] = values;
    if (values.length === 1 && first.startsWith("~*"))
      return { name, op: "regex", value: first.slice(2) };
    headers.changed(name, "upper and lower case differ");
    if (values.length === 1) return { name, op: "equals", value: first };
    const words = values.map((value) => value.replaceAll(/[.*+?^${}()|[\]\\/-]/g, "\\$&"));
    return { name, op: "regex", value: `^(?:${words.join("|")})$` };
  });
}

const REDIRECTS: Readonly<Record<number, number>> = { 301: 301, 302: 301, 307: 308, 308: 308 };

/** What becomes of plain requests to a route for HTTPS. */
function httpsOf(members: Members): Record<string, unknown> {
  const given = members.texts("protocols");
  const protocols = given.length === 0 ? ["http", "https"] : [...new Set(given)];
  const status = members.number("https_redirect_status_code") ?? 426;
  if (protocols.includes("http")) return { protocols };
  const code = REDIRECTS[status];
  if (code === undefined) {
    members.changed(
      "https_redirect_status_code",
      `plain requests are not taken, without ${status}`,
    );
    return { protocols };
  }
  if (code !== status) members.changed("https_redirect_status_code", `${status} became ${code}`);
  return { protocols: ["http", "https"], https_redirect: code };
}

function leaveOutRest(members: Members): void {
  members.leaveOut("path_handling", "paths are put together as v0 does", "v0");
  for (const name of ["request_buffering", "response_buffering"])
    members.leaveOut(name, "the service's response_buffer_bytes decides", true);
  for (const name of ["sources", "destinations"])
    members.leaveOut(name, "these are for streams; use client_cidrs");
}
