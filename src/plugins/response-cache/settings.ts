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
 * Statuses that may be stored. Excludes those that a client can cause with an unusual request: a stored 400, 405, 413, 414, 431
 * or 501 would deny the page to all clients (cache-poisoned denial of service).
 */
const STATUSES = [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410] as const;
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
      description: "Cacheable response statuses",
    },
  ),
  methods: listOf(oneOf(METHODS, { description: "A method" }), {
    default: [...METHODS],
    maxItems: METHODS.length,
    description: "Methods served from the cache",
  }),
  respect_cache_control: flag(
    true,
    "Follow Cache-Control and Expires of responses; otherwise store all for ttl_default",
  ),
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
    "Memory in bytes for all responses of this instance; each worker has an equal share",
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
    "Ignore Cache-Control of requests, except no-store and only-if-cached",
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
  if (own.max_body > own.max_total)
    problems.push({ path: "max_body", message: "must not be more than max_total" });
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
