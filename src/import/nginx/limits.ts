// Converts limits of requests, compression and the cache to plugins; knows no path.
import type { Document } from "../../control/body.ts";
import type { NginxContext } from "./nginx.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";
import { bytesOf, millisecondsOf } from "./variables.ts";

export interface ExtraPlugin {
  readonly name: string;
  readonly config: Document;
  readonly what: string;
}

/** Of a route; `isProxied`: it has a service. */
export function extrasOf(
  level: Level,
  { isProxied, context }: { readonly isProxied: boolean; readonly context: NginxContext },
): readonly ExtraPlugin[] {
  const limits = [rateLimit(level, context), concurrencyLimit(level, context)];
  const ofProxy = isProxied ? [bodyLimit(level), compression(level), cache(level, context)] : [];
  return [...limits, ...ofProxy].filter((plugin) => plugin !== null);
}

function keyOf(source: string): string | null {
  if (/^\$\{?(?:binary_)?remote_addr\}?$/.test(source)) return "ip";
  if (/^\$\{?(?:server_name|host|http_host)\}?$/.test(source)) return "route";
  const [, kind, name = ""] = /^\$\{?(http|cookie|arg)_(\w+)\}?$/.exec(source) ?? [];
  if (kind === "http") return `header:${name.replaceAll("_", "-")}`;
  if (kind === undefined) return null;
  return kind === "cookie" ? `cookie:${name}` : `query:${name}`;
}

/** The zone of a limit: `zone=login:10m` of the other directive. */
function zoneOf(level: Level, directive: string, name: string): Directive | null {
  const all = level.chain.flatMap((each) => each.own(directive));
  return all.find(({ args }) => args.some((arg) => arg.startsWith(`zone=${name}:`))) ?? null;
}

function rateLimit(level: Level, { output }: NginxContext): ExtraPlugin | null {
  const limits: Document[] = [];
  const all = level.nearest("limit_req");
  for (const { args, place } of all) {
    const what = `limit_req at ${shownPlace(place)}`;
    const value = (key: string) =>
      args.find((arg) => arg.startsWith(`${key}=`))?.slice(key.length + 1) ?? null;
    const zone = zoneOf(level, "limit_req_zone", value("zone") ?? "");
    const rate = zone?.args.find((arg) => arg.startsWith("rate="))?.slice(5) ?? "";
    const [, number, unit] = /^(\d+)r\/([sm])$/.exec(rate) ?? [];
    const key = keyOf(zone?.args[0] ?? "");
    if (number === undefined || key === null || Number(number) === 0) {
      output.report.omitted(what, `a limit by ${zone?.args[0] ?? "this zone"} has no equivalent`);
      continue;
    }
    if (!args.includes("nodelay") && value("burst") !== null)
      output.report.changed(what, "requests of the burst are not delayed");
    limits.push({
      name: (value("zone") ?? "default").replaceAll(/[^A-Za-z0-9_.-]/g, "-").slice(0, 60),
      algorithm: "token_bucket",
      requests: Number(number),
      window: unit === "s" ? 1 : 60,
      burst: Number(value("burst") ?? 0) + 1,
      key,
    });
  }
  const [first] = all;
  if (limits.length === 0 || first === undefined) return null;
  const status = Number(level.value("limit_req_status") ?? 503);
  const unique = limits.filter(
    ({ name }, at) => limits.findIndex((other) => other["name"] === name) === at,
  );
  return {
    name: "rate-limit",
    what: `limit_req at ${shownPlace(first.place)}`,
    config: { limits: unique, status, headers: "off" },
  };
}

function concurrencyLimit(level: Level, { output }: NginxContext): ExtraPlugin | null {
  const [first, ...others] = level.nearest("limit_conn");
  if (first === undefined) return null;
  const what = `limit_conn at ${shownPlace(first.place)}`;
  for (const { place } of others)
    output.report.omitted(`limit_conn at ${shownPlace(place)}`, "only one of them is imported");
  const zone = zoneOf(level, "limit_conn_zone", first.args[0] ?? "");
  const key = keyOf(zone?.args[0] ?? "");
  const max = Number(first.args[1]);
  if (key === null || !(max >= 1)) {
    output.report.omitted(what, `a limit by ${zone?.args[0] ?? "this zone"} has no equivalent`);
    return null;
  }
  return { name: "concurrency-limit", what, config: { max, key } };
}

function bodyLimit(level: Level): ExtraPlugin | null {
  const directive = level.last("client_max_body_size");
  const bytes = bytesOf(directive?.args[0] ?? null);
  if (directive === null || bytes === null || bytes === 0) return null;
  // Limits of the listener apply to headers and URLs.
  const config = {
    max_body_bytes: bytes,
    max_headers_bytes: 1_048_576,
    max_uri_bytes: 1_048_576,
  };
  return {
    name: "request-size-limit",
    what: `client_max_body_size at ${shownPlace(directive.place)}`,
    config,
  };
}

function compression(level: Level): ExtraPlugin | null {
  const directive = level.last("gzip");
  if (directive?.args[0] !== "on") return null;
  const types = level.nearest("gzip_types").flatMap(({ args }) => args);
  const known = types.filter((type) => /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+$/.test(type));
  const all = types.includes("*") ? ["text/*", "application/*", "image/svg+xml"] : known;
  return {
    name: "compress",
    what: `gzip at ${shownPlace(directive.place)}`,
    config: {
      encodings: ["gzip"],
      types: [...new Set(["text/html", ...all])].slice(0, 200),
      min_bytes: Number(level.value("gzip_min_length") ?? 20) || 20,
      gzip_level: Math.min(9, Math.max(1, Number(level.value("gzip_comp_level") ?? 1) || 1)),
    },
  };
}

function cache(level: Level, { output }: NginxContext): ExtraPlugin | null {
  const directive = level.last("proxy_cache");
  if (directive === null || directive.args[0] === "off") return null;
  const what = `proxy_cache at ${shownPlace(directive.place)}`;
  output.report.changed(what, "Cache-Control of responses and the plugin's own key decide");
  const valid = level.nearest("proxy_cache_valid").find(({ args }) => {
    const statuses = args.slice(0, -1);
    return statuses.length === 0 || statuses.includes("200") || statuses.includes("any");
  });
  const time = millisecondsOf(valid?.args.at(-1) ?? null);
  const ttl = time === null ? 0 : Math.min(31_536_000, Math.round(time / 1000));
  return { name: "response-cache", what, config: ttl === 0 ? {} : { ttl_default: ttl } };
}
