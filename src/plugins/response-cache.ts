// response-cache: gives answers that were given before, as HTTP allows it.
import { definePlugin, httpScopes, type Purge } from "../pdk/definition.ts";
import { createInstance } from "./response-cache/instance.ts";
import { lookUp } from "./response-cache/lookup.ts";
import { finish, receive } from "./response-cache/receive.ts";
import { problemsOf, schema } from "./response-cache/settings.ts";

export default definePlugin({
  name: "response-cache",
  summary: "Gives answers that were given before, as HTTP allows it",
  description: `Answers are stored and given again as RFC 9111 says, for as long as \`Cache-Control\` or \`Expires\` of the answer allow.
Nothing is guessed: what does not say for how long it may be kept is only kept where \`ttl_default\` is set, and then not for
requests with cookies unless \`key.cookies\` names those by which answers differ. Never kept are \`private\` and \`no-store\`,
\`Vary: *\`, streams of events or pictures, answers that set a cookie, and answers to requests that carry \`Authorization\` to the service (an authentication plugin
that hides the credentials takes it away before).

Each answer says what was done with it: \`Cache-Status\` (RFC 9211), and in one word \`X-Cache-Status\`: HIT, MISS, BYPASS, STALE,
REVALIDATED or EXPIRED. \`Age\` is how old it is.

**Who gets what.** Answers are told apart by route, scheme, port, host, path, query, the fields that \`Vary\` names, and by consumer:
what one consumer got, or somebody whom an authentication has recognised without a consumer, is shown to nobody else, unless you turn
\`key.consumer\` off. An application that knows people by a cookie of its own has to say \`private\`, or the cookie has to be in
\`key.cookies\`. Query parameters that do not count do not go upstream either, so that nobody can use them to shape what others
see; requests with fields by which frameworks change the method or the path (\`X-HTTP-Method-Override\`, \`X-Original-URL\` and the
like) pass by the cache. Errors that a single odd request can bring about (400, 405, 414, 431, 501) are never kept.

**When time is over** the service is asked whether the answer still holds (\`If-None-Match\`, \`If-Modified-Since\`).
\`stale_while_revalidate\` gives the old one meanwhile, \`stale_if_error\` gives it when the service fails; \`must-revalidate\`,
\`proxy-revalidate\` and \`no-cache\` forbid both, and \`s-maxage\` does unless the answer names the directive itself. POST, PUT,
PATCH and DELETE that succeed outdate what is stored of the same address, and what \`Location\` and \`Content-Location\` of their
answers name on the same host.

**Many at once.** Of several requests for the same only the first goes upstream; the others wait until its answer is there, 30 seconds at
most. Those who wait are let go as soon as it is clear that the answer cannot be stored, and for ten seconds after that nobody waits
for it. When the first client goes away or its answer breaks off on the way, the next one takes its place; when the service gives an
error, each of the others tries for itself.

**Ranges and conditions** are answered from a stored whole: one range, \`If-Range\`, 304, 416. A request for a part of what is not
stored passes by. On a miss a condition is taken off, so that there is something to store, and the client gets the whole once.

**Memory.** Each worker keeps its own answers, in an equal share of \`max_total\`; a page is fetched once for each worker. What was
not asked for since the last look goes first (SIEVE), so a flood of addresses that are asked for once cannot wash away what people
use. Nothing is kept over a restart, and a change of the instance's settings begins with nothing.

The store comes after everything that refuses a request, changes it or sends it elsewhere, and keeps what the service has answered:
answers are told apart by what goes upstream, and transform, script and the like change each answer on its way to its own client.
Only what has a \`priority\` below 2500 is part of what is stored; put \`compress\` there to store compressed answers.

\`POST /api/v1/cache/purge\` forgets answers in all workers before it answers: \`{"key": "shop.example.com/page?a=1"}\`,
\`{"prefix": "shop.example.com/images/"}\`, \`{"tag": "news"}\` (a word of the \`Surrogate-Key\` that the service has sent), or
everything; with \`plugin_id\` of one instance only.`,
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
        instance.fills.outdate(() => true);
        return instance.store.purge(
          which.by === "key" ? { by: "key", value: instance.keys.named(which.value) } : which,
        );
      },
      close: () => instance.fills.close(),
    };
  },
});
