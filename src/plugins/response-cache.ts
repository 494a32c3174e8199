// response-cache: gives answers that were given before, as HTTP allows it.
import { definePlugin, httpScopes, type Purge } from "../pdk/definition.ts";
import { createInstance } from "./response-cache/instance.ts";
import { lookUp } from "./response-cache/lookup.ts";
import { finish, receive } from "./response-cache/receive.ts";
import { problemsOf, schema } from "./response-cache/settings.ts";

export default definePlugin({
  name: "response-cache",
  summary: "Gives answers that were given before, as HTTP allows it",
  description: `TODO`,
  group: "content",
  order: 6000,
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
        return instance.store.purge(which);
      },
      close: () => instance.fills.close(),
    };
  },
});
