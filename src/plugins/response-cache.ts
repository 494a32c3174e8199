// response-cache: caches responses according to HTTP caching rules.
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { removeFile } from "./response-cache/disk.ts";
import { close, createInstance } from "./response-cache/instance.ts";
import { keyMaker } from "./response-cache/key.ts";
import { lookUp } from "./response-cache/lookup.ts";
import { finish, receive } from "./response-cache/receive.ts";
import { problemsOf, schema } from "./response-cache/settings.ts";
import { headOf } from "./response-cache/store.ts";

export default definePlugin({
  name: "response-cache",
  summary: "Caches responses according to HTTP caching rules (RFC 9111)",
  description: `The gateway stores and reuses responses by RFC 9111, for as long as their \`Cache-Control\` or \`Expires\` allow, or
\`Sluice-Cache-Control\` or \`CDN-Cache-Control\` in their place (RFC 9213; \`target_fields\`). A response without explicit freshness is stored
only with \`ttl_default\` or \`heuristic\`, and then not for requests with cookies unless \`key.cookies\` names the cookies that matter. A
response that is stale from the start (\`no-cache\`, \`max-age=0\`, an invalid \`Expires\`) is stored if it has \`ETag\` or \`Last-Modified\`, and
validated at each use. Never stored are \`private\` and \`no-store\`, \`Vary: *\`, event streams and multipart streams, parts (206), responses
to POST, responses that set a cookie, and responses to requests that carry \`Authorization\` to the service (an authentication plugin with
\`hide_credentials\` removes it).

Each response has \`Cache-Status\` (RFC 9211) and, in one word, \`X-Cache-Status\`: HIT, MISS, BYPASS, STALE, REVALIDATED or EXPIRED.
\`Age\` is its age. The list of requests says of each request why it was not served from the cache, and why its response was not stored.

**Cache key.** The key has route, scheme, port, host, path, query, the headers that \`Vary\` names, and the consumer: a response for
one consumer, or for an authenticated client without a consumer, is never served to another, unless you turn \`key.consumer\` off.
\`Accept\`, \`Accept-Encoding\` and \`Accept-Language\` are compared in a normalized form.
An application that identifies users by its own cookie has to send \`private\`, or the cookie has to be in \`key.cookies\`. Query
parameters outside of the key do not go upstream either, so that no client can use them to change what others see; requests with
headers by which frameworks change the method or the path (\`X-HTTP-Method-Override\`, \`X-Original-URL\` and the like) bypass the
cache. Errors that a single unusual request can cause (400, 405, 414, 500 to 504) are stored only if \`statuses\` lists them.

**Stale responses** are revalidated with the service (\`If-None-Match\`, \`If-Modified-Since\`). \`stale_while_revalidate\` serves the
stale response meanwhile, \`stale_if_error\` serves it when the service fails; \`must-revalidate\`, \`proxy-revalidate\` and \`no-cache\`
forbid both, and so does \`s-maxage\` unless the response has the directive itself. Successful requests with an unsafe method
invalidate the stored responses of the same URL, and of the URLs in \`Location\` and \`Content-Location\` on the same host, in all workers
before their client gets the response. \`no-cache\`, \`max-age\`, \`min-fresh\` and \`max-stale\` of requests count only with
\`ignore_client_no_cache\` off: otherwise any client could send its requests to the service.

**Request coalescing.** Of several requests for the same key, on all workers, only the first goes upstream; the others wait for its
response, 30 seconds at most. The gateway releases them as soon as it knows that the response cannot be stored, and for the next ten seconds
requests for that key do not wait. When the first client disconnects, its worker ends or its response is incomplete, the next request
takes over; when the service returns an error, each of the others goes upstream.

**Ranges and conditions** are evaluated on a stored complete response: one range, \`If-Range\`, 304, 416. A range request for
something not stored bypasses the cache. On a miss the gateway removes conditions, so that there is something to store, and the
client gets the complete response once.

**Memory.** All workers share one store of \`max_total\` bytes, which takes up memory as it fills; indexes take at most a quarter besides, and each
worker remembers copies: 40 MiB at most of responses up to 12 KiB, and 16 MiB of bodies up to 1 MiB that are requested twice in 10 seconds, the least
recently used out first. Eviction uses SIEVE, so that a flood of URLs requested only once cannot displace what
clients use. The store is empty after a restart and after a change of the instance's settings.

**Files.** With \`storage: "disk"\`, bodies from \`disk_above\` bytes on are files below \`cache/\` in the data directory, up to
\`disk_total\` bytes, which outlive a restart. A disk that is full or fails only means that responses are not stored.

The cache runs after everything that rejects, changes or reroutes a request, and stores responses as the service sent them: the
key reflects the upstream request, and transform, script and the like change each response on its way to its client. Only plugins
with a \`priority\` below 2500 are part of what is stored; move \`compress\` there to store compressed responses.

\`POST /api/v1/cache/purge\` removes responses for all workers before it returns: \`{"key": "shop.example.com/page?a=1"}\`,
\`{"prefix": "shop.example.com/images/"}\`, \`{"tag": "update"}\` (a tag of the \`Surrogate-Key\` or \`Cache-Tag\` that the service has sent), or
everything; with \`plugin_id\` of one instance only. With \`"soft": true\` they become stale instead of being removed. In a
fleet all nodes purge.`,
  group: "content",
  order: 2500,
  phases: ["request", "response", "body", "log"],
  scopes: httpScopes,
  config: schema,
  example: { ttl_default: 60, stale_if_error: 3600, key: { query_exclude: ["utm_source"] } },
  onError: "open",
  check: problemsOf,
  cache: {
    size: ({ max_total, storage, disk_total }) => ({
      bytes: max_total,
      fileBytes: storage === "disk" ? disk_total : 0,
    }),
    resourceOf: (own, address) => keyMaker(own).named(address),
    onFileRemoved(directory, head) {
      const { file } = headOf(head);
      if (file !== undefined) removeFile(`${directory}/${file.name}`);
    },
  },
  create(own, kit) {
    const { openCache: open } = kit;
    // Without memory for its store, the gateway forwards requests as if there were no cache.
    if (open === null) return {};
    const instance = createInstance(own, kit, open);
    return {
      request: (context) => lookUp(context, instance),
      response: (context, draft) => receive(context, draft, instance),
      log: (context) => finish(context, instance),
      close: () => close(instance),
    };
  },
});
