// concurrency-limit: so many requests or connections at the same time, and a short queue for more.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, type Rejection, reject } from "../pdk/response.ts";
import type { RequestContext, StreamContext } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import { config, integer } from "../pdk/fields.ts";
import type { Counters } from "../pdk/kit.ts";
import {
  isOfClient,
  keyProblem,
  keyReader,
  requestKey,
  streamKeyReader,
} from "../pdk/request-key.ts";
import { Places } from "./concurrency-limit/places.ts";

const schema = config({
  max: t.Integer({
    minimum: 1,
    maximum: 1_000_000,
    description: "How many requests or connections of one key there may be at the same time",
  }),
  queue: integer(0, {
    minimum: 0,
    maximum: 100_000,
    description: "How many more of one key may wait for their turn; connections never wait",
  }),
  queue_timeout: integer(1000, {
    minimum: 1,
    maximum: 3_600_000,
    description: "Milliseconds after which a request that waits is refused",
  }),
  key: requestKey("service", "What is counted together"),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "concurrency-limit",
  summary: "Lets so many requests or connections be under way at the same time and no more",
  description: `A request counts from before it goes to a target until its last byte has gone to the client or the client is gone; a
WebSocket counts as long as it is open. On stream routes and on services for TCP and UDP connections are counted; one too many
is closed at once.

The number is exact over all workers. A request too many is refused with 503, or with 429 when the key tells clients apart
(anything but \`route\` and \`service\`), and \`Retry-After: 1\`. With a \`queue\`, it waits first. Those that wait
in one worker are served in the order in which they came; a place that comes free in one worker is noticed in the others
within 20 milliseconds, and whichever of them looks first has it. A client that goes away while it waits loses its place.`,
  group: "traffic",
  order: 6900,
  phases: ["connect", "access", "log"],
  scopes: [...httpScopes, "stream_route"],
  config: schema,
  example: { max: 100, queue: 50, queue_timeout: 2000 },
  onError: "open",
  check: ({ key }) => {
    const problem = keyProblem(key);
    return problem === null ? [] : [{ path: "key", message: problem }];
  },
  create: (own, { counters }) => createHandlers(own, counters),
});

/** What a request holds: none of it once it is released. */
interface Stay {
  readonly key: string;
  isInside: boolean;
}

function createHandlers(own: Config, counters: Counters): PluginHandlers {
  const places = new Places(own, counters);
  const keyOf = keyReader(own.key);
  const streamKeyOf = streamKeyReader(own.key);
  const refusal = (reason: string) => refusalOf(own, reason);
  const [full, late, gone] = [refusal("cl.full"), refusal("cl.timeout"), refusal("cl.gone")];

  const enter = (context: RequestContext | StreamContext, key: string) =>
    context.memory.set(places, { key, isInside: true } satisfies Stay);
  const leave = (context: RequestContext | StreamContext) => {
    const stay = context.memory.get(places) as Stay | undefined;
    if (stay?.isInside !== true) return;
    stay.isInside = false;
    places.leave(stay.key);
  };

  return {
    access(context): Outcome | Promise<Outcome> {
      const key = keyOf(context);
      if (places.enter(key)) {
        enter(context, key);
        return undefined;
      }
      if (own.queue === 0) return full;
      const began = performance.now();
      return places.wait(key, context.signal).then((end) => {
        if (end !== "full") context.queued(performance.now() - began);
        if (end === "entered") {
          enter(context, key);
          return undefined;
        }
        return { full, late, gone }[end];
      });
    },
    log: leave,
    connect(context) {
      const key = streamKeyOf(context);
      if (!counters.enter(key, own.max)) return { reason: full.reason };
      enter(context, key);
      return undefined;
    },
    disconnect: leave,
  };
}

function refusalOf({ key }: Config, reason: string): Rejection {
  const isClients = isOfClient(key);
  return reject(isClients ? 429 : 503, reason, {
    detail: isClients
      ? "there are too many requests of this client at the same time"
      : "there are too many requests at the same time",
    headers: { "Retry-After": "1" },
    token: isClients ? "http_request_denied" : "connection_limit_reached",
  });
}
