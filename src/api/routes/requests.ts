// Endpoints of recent requests: decodes filters and limits; knows no ring.
import type { Changes } from "../../control/change.ts";
import type { Observation } from "../../observe/observation.ts";
import {
  createRequestFilter,
  type FilterWords,
  type RequestFilter,
  requestFilters,
} from "../../observe/requests/request-filter.ts";
import { newestFirst } from "../../observe/requests/request-log.ts";
import type { RequestView } from "../../observe/requests/request-view.ts";
import { ApiError } from "../../model/error.ts";
import { errorResponses, pathParameter, queryParameter, readResponses } from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import type { EventStreams } from "../event-stream.ts";
import { NODE_PARAMETER } from "../node-reader.ts";
import {
  askedNodes,
  eitherContent,
  type FleetSource,
  followNodes,
  nodeParameter,
  pathFor,
  readNodes,
} from "../node-view.ts";
import { requireKnownQuery } from "../write-options.ts";
import { idOf } from "./resource-endpoints.ts";

const path = "/api/v1/requests";
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 500;

export interface RequestSource extends FleetSource {
  readonly changes: Changes;
  readonly observation: Observation;
}

export function requestEndpoints(source: RequestSource, streams: EventStreams): Endpoint[] {
  const { requests, live } = source.observation;
  return [
    {
      method: "GET",
      path,
      takesBody: false,
      description: listDescription,
      answer: async (call) => {
        requireKnownQuery(call, ["limit", NODE_PARAMETER, ...requestFilters]);
        const [filter, limit] = [filterOf(call, source), limitOf(call)];
        const own = () => requests.list(filter, limit);
        const nodes = askedNodes(call, source);
        if (nodes === null) return { body: await own() };
        const { found, ...completeness } = await readNodes(nodes, call, { path, own, decode });
        const items = found.flatMap(({ node, value }) => value.map((one) => ({ ...one, node })));
        return { body: { ...completeness, items: newestFirst(items).slice(0, limit) } };
      },
    },
    {
      method: "GET",
      path: `${path}/stream`,
      takesBody: false,
      description: streamDescription,
      answer: (call) => {
        requireKnownQuery(call, ["access_token", NODE_PARAMETER, ...requestFilters]);
        const filter = filterOf(call, source);
        const own = (wake: () => void) => live.subscribe(filter, wake);
        const nodes = askedNodes(call, source);
        if (nodes === null) return streams.openFor(call.principal, own);
        const stream = {
          path: pathFor(`${path}/stream`, call),
          kinds: ["request", "dropped"],
          own,
        };
        return streams.openFor(call.principal, followNodes(nodes, call, stream));
      },
    },
    {
      method: "GET",
      path: `${path}/:id`,
      takesBody: false,
      description: {
        summary: "Get a recent request",
        tags,
        parameters: [pathParameter("ID of the request")],
        responses: readResponses("Request"),
      },
      answer: async (call) => {
        requireKnownQuery(call, []);
        return { body: await requests.get(idOf(call)) };
      },
    },
  ];
}

function filterOf(call: Call, { changes }: RequestSource): RequestFilter {
  const words: Record<string, string> = {};
  for (const name of requestFilters) {
    const values = call.query.getAll(name);
    if (values.length > 1) throw new ApiError(400, `${name}: must be given once`);
    if (values[0] !== undefined) words[name] = values[0];
  }
  return createRequestFilter(words as FilterWords, changes.config);
}

function limitOf({ query }: Call): number {
  const values = query.getAll("limit");
  const [text = String(DEFAULT_LIMIT)] = values;
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (values.length > 1 || limit < 1 || limit > MAX_LIMIT)
    throw new ApiError(400, `limit: must be a whole number from 1 to ${MAX_LIMIT}`);
  return limit;
}

/** The requests of another node, from its list. */
function decode(response: unknown): RequestView[] {
  const list = response as readonly Partial<RequestView>[];
  if (!list.every(({ id, time }) => typeof id === "string" && typeof time === "string"))
    throw new TypeError("not a list of requests");
  return list as RequestView[];
}

const tags = ["Requests"];

const filterParameters = [
  queryParameter("status", "Only these statuses: `200`, `5xx`, `400-499`, or several with commas"),
  queryParameter("host", "Only this host, or all its subdomains with a leading `*.`"),
  queryParameter("route", "Only requests of this route or stream route: ID or name"),
  queryParameter("service", "Only requests of this service: ID or name"),
  queryParameter("address", "Only clients with this address or in this network (CIDR)"),
  queryParameter(
    "cache",
    "Only requests with this outcome of response-cache, such as `hit` or `miss`, or this reason, such as `set_cookie`",
  ),
  queryParameter(
    "grpc",
    "Only gRPC calls with this status, such as `14` or `UNAVAILABLE`; `error`: every status but OK",
  ),
  queryParameter(
    "q",
    "Only requests whose path, host, method, user agent or another text contains this",
  ),
  queryParameter("kind", "Only `http` or only `stream`"),
];

const listDescription = {
  summary: "List recent requests",
  description:
    "Newest first: the last completed requests of this gateway, up to settings.retention.requests, and connections" +
    " of stream routes. Values of query parameters with names such as `token` are masked, see settings.requests.",
  tags,
  parameters: [
    {
      name: "limit",
      in: "query",
      required: false,
      description: "Maximum number of requests",
      schema: { type: "integer", minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
    },
    ...filterParameters,
    nodeParameter,
  ],
  responses: {
    "200": {
      description: "All matches, newest first",
      content: eitherContent(
        { type: "array", items: { $ref: "#/components/schemas/Request" } },
        "NodesRequests",
      ),
    },
    ...errorResponses([400, 401, 403, 404, 500, 503]),
  },
};

const streamDescription = {
  summary: "Stream completed requests as server-sent events",
  description:
    "Each `request` event is a request as in the list. A `dropped` event holds the number of skipped requests, because there were" +
    " too many of them or because the client read too slowly. The stream ends with its session or token. With `node`, each" +
    " event has the `node` that it is of, and a `nodes` event holds `partial` and `missing` at the start and when they change.",
  tags,
  parameters: [
    ...filterParameters,
    nodeParameter,
    queryParameter("access_token", "A token, for clients that cannot send Authorization"),
  ],
  responses: {
    "200": {
      description: "Events until the connection ends",
      content: { "text/event-stream": { schema: { type: "string" } } },
    },
    ...errorResponses([400, 401, 403, 404, 429, 500, 503]),
  },
};
