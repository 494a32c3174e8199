// The endpoint of the event stream: which kinds, from where on; knows no event's content.
import {
  type EventKind,
  eventKindNames,
  eventKinds,
  type SubscribeOptions,
} from "../../control/events.ts";
import { includesRole, type Principal } from "../../control/principal.ts";
import { ApiError } from "../../model/error.ts";
import { errorResponses, queryParameter } from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import type { EventStreams } from "../event-stream.ts";
import { requireKnownQuery } from "../write-options.ts";

export function eventEndpoints(streams: EventStreams): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/api/v1/events",
      takesBody: false,
      description,
      answer: (call) => {
        requireKnownQuery(call, ["kinds", "last_event_id", "access_token"]);
        return streams.open(call.principal, wantedOf(call));
      },
    },
  ];
}

function wantedOf(call: Call): Omit<SubscribeOptions, "role"> {
  const last = call.headers.get("last-event-id") ?? call.query.get("last_event_id");
  // A browser that has seen no id yet sends an empty one, or none.
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
  summary: "Follow what happens, as server-sent events",
  description:
    "A `config` event follows each change once all workers serve it, an `audit` event (admins only) each entry of the audit" +
    " log. The data of an event is JSON. A client that comes back with `Last-Event-ID` is sent what it missed; when that is" +
    " gone it is sent `reset`, and `dropped` when it read too slowly: then it has to read everything again. A comment every" +
    " 15 seconds keeps a silent stream open. The stream ends with the session or token that it was opened with.",
  tags: ["Events"],
  parameters: [
    queryParameter("kinds", `Kinds of event, separated by commas: ${eventKindNames.join(", ")}`),
    queryParameter("last_event_id", "For clients that cannot send Last-Event-ID"),
    queryParameter("access_token", "A token, for clients that cannot send Authorization"),
    {
      name: "Last-Event-ID",
      in: "header",
      required: false,
      description: "Id of the last event that the client has seen",
      schema: { type: "string" },
    },
  ],
  responses: {
    "200": {
      description: "Events until the connection ends",
      content: { "text/event-stream": { schema: { type: "string" } } },
    },
    ...errorResponses([400, 401, 403, 429, 500]),
  },
};
