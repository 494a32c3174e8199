// The settings of the cache and their validation; knows nothing of the store.
import { Type as t } from "@sinclair/typebox";
import {
  condition,
  config,
  flag,
  group,
  headerName,
  integer,
  listOf,
  nullable,
  oneOf,
} from "../../pdk/fields.ts";

/**
 * Statuses that may be stored. The errors among them are not stored unless listed: an unusual request may cause them, and a stored
 * one denies the page to all clients (cache-poisoned denial of service).
 */
const STATUSES = [
  ...[200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410],
  ...[400, 405, 414, 500, 501, 502, 503, 504],
] as const;
const METHODS = ["GET", "HEAD"] as const;

const YEAR_S = 31_536_000;

const seconds = (description: string) => integer(0, { minimum: 0, maximum: YEAR_S, description });
const bytes = (initial: number, maximum: number, description: string) =>
  integer(initial, { minimum: 0, maximum, description });
const name = (description: string) => t.String({ minLength: 1, maxLength: 256, description });

export const schema = config({
  ttl_default: seconds(
    "Seconds for which responses without explicit freshness are stored; 0: not stored",
  ),
  statuses: listOf(
    t.Unsafe<number>({ type: "integer", enum: [...STATUSES], description: "A status" }),
    {
      default: [200, 203, 204, 300, 301, 308, 404, 410],
      maxItems: STATUSES.length,
      description:
        "Statuses stored without explicit freshness. With it, all are stored but errors that one unusual request may cause, and these too if listed: 400, 405, 414, 500 to 504",
    },
  ),
  heuristic: t.Number({
    minimum: 0,
    maximum: 1,
    default: 0,
    description:
      "Responses with Last-Modified but without explicit freshness are fresh for this share of the time since then, such as 0.1; not with a query; 0: none",
  }),
  heuristic_max: integer(86_400, {
    minimum: 1,
    maximum: YEAR_S,
    description: "Maximum heuristic freshness in seconds",
  }),
  methods: listOf(oneOf(METHODS, { description: "A method" }), {
    default: [...METHODS],
    maxItems: METHODS.length,
    description: "Methods served from the cache",
  }),
  respect_cache_control: flag(
    true,
    "Follow Cache-Control and Expires of responses; otherwise store all for ttl_default",
  ),
  target_fields: listOf(headerName({ description: "Name of a response header" }), {
    default: ["Sluice-Cache-Control", "CDN-Cache-Control"],
    maxItems: 8,
    description:
      "Targeted cache control (RFC 9213): the first of these that a response has replaces its Cache-Control and Expires",
  }),
  vary_headers: listOf(headerName({ description: "Name of a request header" }), {
    maxItems: 20,
    description: "Request headers that vary responses, in addition to their Vary",
  }),
  key: group(
    {
      host: flag(true, "Include the host"),
      path: flag(true, "Include the path"),
      query_include: nullable(
        t.Array(name("Name of a parameter"), {
          maxItems: 100,
          description:
            "Query parameters to include; others do not go upstream; null: all; an empty list: none",
        }),
      ),
      query_exclude: listOf(name("Name of a parameter"), {
        maxItems: 100,
        description: "Query parameters to exclude, which do not go upstream",
      }),
      headers: listOf(headerName({ description: "Name of a request header" }), {
        maxItems: 20,
        description: "Request headers to include",
      }),
      cookies: listOf(name("Name of a cookie"), {
        maxItems: 20,
        description: "Cookies to include",
      }),
      consumer: flag(
        true,
        "Include the consumer, so that no consumer sees the response of another; turn it off only for public responses",
      ),
    },
    "Cache key",
  ),
  max_body: bytes(
    8_388_608,
    1_073_741_824,
    "Maximum body size in bytes; longer responses are not stored",
  ),
  max_total: bytes(
    268_435_456,
    1_099_511_627_776,
    "Memory in bytes for all responses of this instance, in common for all workers",
  ),
  storage: oneOf(["memory", "disk"], {
    default: "memory",
    description: "Where bodies are stored; disk: long ones in files of the data directory",
  }),
  disk_above: integer(65_536, {
    minimum: 4096,
    maximum: 1_073_741_824,
    description:
      "With disk, length in bytes from which a body is in a file; shorter ones are in memory",
  }),
  disk_total: bytes(
    1_073_741_824,
    1_099_511_627_776,
    "With disk, size in bytes of all files of this instance; incomplete files may take as much again",
  ),
  stale_while_revalidate: seconds(
    "Seconds for which a stale response is served while it is refreshed, unless the response says otherwise",
  ),
  stale_if_error: seconds(
    "Seconds for which a stale response is served when the service fails, unless the response says otherwise",
  ),
  coalesce: flag(
    true,
    "Request coalescing: of concurrent requests for the same key only one goes upstream",
  ),
  bypass_when: nullable(condition("Requests that bypass the cache")),
  cache_authorized: flag(
    false,
    "Also store responses to requests with Authorization, where public, s-maxage or must-revalidate allows it",
  ),
  cache_set_cookie: flag(
    false,
    "Also store responses that set a cookie, without the cookie, which only the first client gets",
  ),
  ignore_client_no_cache: flag(
    true,
    "Ignore no-cache, max-age, min-fresh and max-stale of requests, with which any client could make its requests go to the service; no-store and only-if-cached always count",
  ),
});

export type Config = (typeof schema)["static"];

export function problemsOf(own: Config): { readonly path: string; readonly message: string }[] {
  const problems: { readonly path: string; readonly message: string }[] = [];
  if (!own.respect_cache_control && own.ttl_default === 0)
    problems.push({
      path: "ttl_default",
      message: "is required when respect_cache_control is off",
    });
  const room = own.storage === "disk" ? "disk_total" : "max_total";
  if (own.max_body > own[room])
    problems.push({ path: "max_body", message: `must not be more than ${room}` });
  if (own.storage === "disk" && own.disk_above > own.max_total)
    problems.push({ path: "disk_above", message: "must not be more than max_total" });
  if (own.key.query_include !== null && own.key.query_exclude.length > 0)
    problems.push({
      path: "key.query_exclude",
      message: "cannot be combined with key.query_include",
    });
  if (!own.methods.includes("GET"))
    problems.push({
      path: "methods",
      message: "must contain GET, whose responses also serve HEAD",
    });
  return problems;
}
