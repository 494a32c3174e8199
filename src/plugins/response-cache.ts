// response-cache: caches responses according to HTTP caching rules.
import { definePlugin, httpScopes, type Purge } from "../pdk/definition.ts";
import { createInstance } from "./response-cache/instance.ts";
import { lookUp } from "./response-cache/lookup.ts";
import { finish, receive } from "./response-cache/receive.ts";
import { problemsOf, schema } from "./response-cache/settings.ts";

export default definePlugin({
  name: "response-cache",
  summary: "Caches responses according to HTTP caching rules (RFC 9111)",
  description: `The gateway stores and reuses responses by RFC 9111, for as long as their \`Cache-Control\` or \`Expires\` allow. There is no
heuristic freshness: a response without explicit freshness is stored only with \`ttl_default\`, and then not for requests with
cookies unless \`key.cookies\` names the cookies that matter. Never stored are \`private\` and \`no-store\`, \`Vary: *\`, event streams
and multipart streams, responses that set a cookie, and responses to requests that carry \`Authorization\` to the service (an
authentication plugin with \`hide_credentials\` removes it).

Each response has \`Cache-Status\` (RFC 9211) and, in one word, \`X-Cache-Status\`: HIT, MISS, BYPASS, STALE, REVALIDATED or EXPIRED.
\`Age\` is its age.

**Cache key.** The key has route, scheme, port, host, path, query, the headers that \`Vary\` names, and the consumer: a response for
one consumer, or for an authenticated client without a consumer, is never served to another, unless you turn \`key.consumer\` off.
An application that identifies users by its own cookie has to send \`private\`, or the cookie has to be in \`key.cookies\`. Query
parameters outside of the key do not go upstream either, so that no client can use them to change what others see; requests with
headers by which frameworks change the method or the path (\`X-HTTP-Method-Override\`, \`X-Original-URL\` and the like) bypass the
cache. Errors that a single malformed request can cause (400, 405, 414, 431, 501) are never stored.

**Stale responses** are revalidated with the service (\`If-None-Match\`, \`If-Modified-Since\`). \`stale_while_revalidate\` serves the
stale response meanwhile, \`stale_if_error\` serves it when the service fails; \`must-revalidate\`, \`proxy-revalidate\` and \`no-cache\`
forbid both, and so does \`s-maxage\` unless the response has the directive itself. Successful POST, PUT, PATCH and DELETE requests
invalidate the stored responses of the same URL, and of the URLs in \`Location\` and \`Content-Location\` on the same host.

**Request coalescing.** Of several requests for the same key only the first goes upstream; the others wait for its response, 30
seconds at most. The gateway releases them as soon as it knows that the response cannot be stored, and for the next ten seconds
requests for that key do not wait. When the first client disconnects or its response is incomplete, the next request takes over;
when the service returns an error, each of the others goes upstream.

**Ranges and conditions** are evaluated on a stored complete response: one range, \`If-Range\`, 304, 416. A range request for
something not stored bypasses the cache. On a miss the gateway removes conditions, so that there is something to store, and the
client gets the complete response once.

**Memory.** Each worker has a cache of its own, with an equal share of \`max_total\`; each worker fetches a page once. Eviction uses
SIEVE, so that a flood of URLs requested only once cannot displace what clients use. The cache is empty after a restart and after
a change of the instance's settings.

The cache runs after everything that rejects, changes or reroutes a request, and stores responses as the service sent them: the
key reflects the upstream request, and transform, script and the like change each response on its way to its client. Only plugins
with a \`priority\` below 2500 are part of what is stored; move \`compress\` there to store compressed responses.

\`POST /api/v1/cache/purge\` removes responses in all workers before it returns: \`{"key": "shop.example.com/page?a=1"}\`,
\`{"prefix": "shop.example.com/images/"}\`, \`{"tag": "update"}\` (a tag of the \`Surrogate-Key\` that the service has sent), or
everything; with \`plugin_id\` of one instance only. In a fleet all nodes purge.`,
  group: "content",
  order: 2500,
  phases: ["request", "response", "body", "log"],
  scopes: httpScopes,
  config: schema,
  example: { ttl_default: 60, stale_if_error: 3600, key: { query_exclude: ["utm_source"] } },
  onError: "open",
  check: problemsOf,
  async create(own, kit) {
    const { default: Policy } = await import("http-cache-semantics");
    const instance = createInstance(own, kit, Policy);
    return {
      request: (context) => lookUp(context, instance),
      response: (context, draft) => receive(context, draft, instance),
      log: (context) => finish(context, instance),
      purge(which: Purge) {
        instance.fills.invalidate(() => true);
        return instance.store.purge(
          which.by === "key" ? { by: "key", value: instance.keys.named(which.value) } : which,
        );
      },
      close: () => instance.fills.close(),
    };
  },
});
