// What can be set about a cache, and what of it cannot go together; knows nothing of how answers are kept.
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
 * Statuses whose answers may be kept. Left out are those that a client can bring about with a request that others would never
 * send: 400, 405, 413, 414, 431, 501 kept for all would be a way to take a page away from everybody.
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
    "Seconds for which answers are kept that do not say it themselves; 0: those are not kept",
  ),
  statuses: listOf(
    t.Unsafe<number>({ type: "integer", enum: [...STATUSES], description: "A status" }),
    {
      default: [200, 203, 204, 300, 301, 308, 404, 410],
      maxItems: STATUSES.length,
      description: "Answers with these statuses may be kept",
    },
  ),
  methods: listOf(oneOf(METHODS, { description: "A method" }), {
    default: [...METHODS],
    maxItems: METHODS.length,
    description: "Requests with these methods are answered from the cache",
  }),
  respect_cache_control: flag(
    true,
    "Do as Cache-Control and Expires of answers say; otherwise everything is kept for ttl_default",
  ),
  vary_headers: listOf(headerName({ description: "Name of a request field" }), {
    maxItems: 20,
    description: "Answers differ by these request fields, whether or not their Vary says so",
  }),
  key: group(
    {
      host: flag(true, "Answers differ by host"),
      path: flag(true, "Answers differ by path"),
      query_include: nullable(
        t.Array(name("Name of a parameter"), {
          maxItems: 100,
          description:
            "Only these query parameters count, and only these go upstream; null: all; an empty list: none",
        }),
      ),
      query_exclude: listOf(name("Name of a parameter"), {
        maxItems: 100,
        description: "These query parameters do not count, and do not go upstream",
      }),
      headers: listOf(headerName({ description: "Name of a request field" }), {
        maxItems: 20,
        description: "Answers differ by these request fields",
      }),
      cookies: listOf(name("Name of a cookie"), {
        maxItems: 20,
        description: "Answers differ by these cookies",
      }),
      consumer: flag(
        true,
        "Answers differ by consumer: what one gets, no other one is shown. Turn it off only for what is the same for all",
      ),
    },
    "By what answers are told apart",
  ),
  max_body: bytes(8_388_608, 1_073_741_824, "Bytes; answers with longer bodies are not kept"),
  max_total: bytes(
    268_435_456,
    1_099_511_627_776,
    "Bytes of memory for all answers of this instance in all workers together; each worker has an equal share of its own",
  ),
  stale_while_revalidate: seconds(
    "Seconds after its time for which an answer is still given while a new one is fetched, unless the answer says otherwise",
  ),
  stale_if_error: seconds(
    "Seconds after its time for which an answer is still given when the service fails, unless the answer says otherwise",
  ),
  coalesce: flag(true, "Of several requests for the same at once only one goes upstream"),
  bypass_when: nullable(condition("Requests that neither get a kept answer nor have theirs kept")),
  cache_authorized: flag(
    false,
    "Also keep answers to requests that carry Authorization upstream, where public, s-maxage or must-revalidate allows it",
  ),
  cache_set_cookie: flag(
    false,
    "Also keep answers that set a cookie, without the cookie: only the client that caused it gets that",
  ),
  ignore_client_no_cache: flag(
    true,
    "Whether Cache-Control of requests can neither skip nor refresh what is kept; no-store and only-if-cached always count",
  ),
});

export type Config = (typeof schema)["static"];

export function problemsOf(own: Config): { readonly path: string; readonly message: string }[] {
  const problems: { readonly path: string; readonly message: string }[] = [];
  if (!own.respect_cache_control && own.ttl_default === 0)
    problems.push({ path: "ttl_default", message: "is needed when respect_cache_control is off" });
  if (own.max_body > own.max_total)
    problems.push({ path: "max_body", message: "must not be more than max_total" });
  if (own.key.query_include !== null && own.key.query_exclude.length > 0)
    problems.push({
      path: "key.query_exclude",
      message: "cannot go together with key.query_include",
    });
  if (!own.methods.includes("GET"))
    problems.push({ path: "methods", message: "must hold GET: answers to HEAD come from those" });
  return problems;
}
