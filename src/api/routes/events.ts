// The endpoint of the event stream: decodes kinds and start position; knows no event's content.
import type { EventHub, SubscribeOptions } from "../../control/events.ts";
import { type EventKind, eventKindNames, eventKinds } from "../../control/event-kinds.ts";
import { ALL_NODES } from "../../control/node-reads.ts";
import { includesRole, type Principal } from "../../control/principal.ts";
import { ApiError } from "../../model/error.ts";
import { errorResponses, queryParameter } from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import type { EventStreams } from "../event-stream.ts";
import { NODE_PARAMETER } from "../node-reader.ts";
import { askedNodes, type FleetSource, followNodes, nodeParameter } from "../node-view.ts";
import { requireKnownQuery } from "../write-options.ts";

const path = "/api/v1/events";

export interface EventSource extends FleetSource {
  readonly events: EventHub;
}

/** Every node publishes those of all nodes. */
const FLEET_KINDS: readonly EventKind[] = ["audit", "node"];

export function eventEndpoints(source: EventSource, streams: EventStreams): Endpoint[] {
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description,
      answer: (call) => {
        requireKnownQuery(call, ["kinds", "last_event_id", "access_token", NODE_PARAMETER]);
        const wanted = subscriptionOf(call);
        const nodes = askedNodes(call, source);
        if (nodes === null) return streams.open(call.principal, wanted);
        if (call.query.has("last_event_id"))
          throw new ApiError(400, `last_event_id: not with ${NODE_PARAMETER}`);
        const { role } = call.principal;
        const isAll = nodes.asked === ALL_NODES;
        const kinds = wanted.kinds.filter((kind) => !isAll || !FLEET_KINDS.includes(kind));
        const merged = followNodes(nodes, call, {
          path: `${path}?kinds=${kinds.join(",")}`,
          kinds: [...kinds, "dropped"],
          own: (wake) => source.events.subscribe({ ...wanted, lastEventId: null, role }, wake),
        });
        return streams.openFor(call.principal, merged);
      },
    },
  ];
}

function subscriptionOf(call: Call): Omit<SubscribeOptions, "role"> {
  const last = call.headers.get("last-event-id") ?? call.query.get("last_event_id");
  // A browser without a last event id sends an empty one, or none.
  return { kinds: kindsOf(call), lastEventId: last === "" ? null : last };
}

function kindsOf({ query, principal }: Call): EventKind[] {
  const mayRead = (kind: EventKind) => includesRole(principal.role, eventKinds[kind]);
  const words = query
    .getAll("kinds")
    .flatMap((text) => text.split(","))
    .map((word) => word.trim())
    .filter((word) => word !== "");
  if (words.length === 0) return eventKindNames.filter(mayRead);
  return [...new Set(words)].map((word) => decodeKind(word, principal));
}

function decodeKind(word: string, { role }: Principal): EventKind {
  const kind = eventKindNames.find((name) => name === word);
  if (kind === undefined)
    throw new ApiError(400, `kinds: each must be one of ${eventKindNames.join(", ")}`);
  if (!includesRole(role, eventKinds[kind]))
    throw new ApiError(403, `kinds: the role ${eventKinds[kind]} is required for ${kind}`);
  return kind;
}

const description = {
  summary: "Stream events as server-sent events",
  description:
    "A `config` event follows each change once all workers serve it, an `audit` event (admins only) each entry of the audit" +
    " log. The data of an event is JSON. A client that reconnects with `Last-Event-ID` receives what it missed; when that is" +
    " gone it receives `reset`, and `dropped` when it read too slowly: then it must reload its state. A comment every" +
    " 15 seconds holds an idle stream open. The stream ends with its session or token. With `node`, each event has the `node`" +
    " that it is of, a `nodes` event holds `partial` and `missing` at the start and when they change, and there are no ids.",
  tags: ["Events"],
  parameters: [
    queryParameter("kinds", `Kinds of event, separated by commas: ${eventKindNames.join(", ")}`),
    nodeParameter,
    queryParameter("last_event_id", "For clients that cannot send Last-Event-ID"),
    queryParameter("access_token", "A token, for clients that cannot send Authorization"),
    {
      name: "Last-Event-ID",
      in: "header",
      required: false,
      description: "ID of the last event that the client received",
      schema: { type: "string" },
    },
  ],
  responses: {
    "200": {
      description: "Events until the connection ends",
      content: { "text/event-stream": { schema: { type: "string" } } },
    },
    ...errorResponses([400, 401, 403, 404, 429, 500, 503]),
  },
};
