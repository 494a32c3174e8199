// A route: which requests it matches and what it does with them; knows nothing of the router.
import { type Static, Type as t } from "@sinclair/typebox";
import {
  flag,
  group,
  type Identity,
  integer,
  labels,
  listOf,
  name,
  nullable,
  oneOf,
} from "./fields.ts";
import { retriesFields } from "./service.ts";

const pathMatch = t.Object(
  {
    type: oneOf(["prefix", "exact", "regex"], { description: "How the value is compared" }),
    value: t.String({ minLength: 1, maxLength: 2048, description: "Path or regular expression" }),
  },
  { additionalProperties: false },
);

const grpcMatch = t.Object(
  {
    service: t.String({
      default: "",
      maxLength: 512,
      pattern: "^[\\w.]*$",
      errorMessage: "must be a gRPC service name such as helloworld.Greeter",
      description: "Full name of the service; empty: any",
    }),
    method: t.String({
      default: "",
      maxLength: 256,
      pattern: "^\\w*$",
      errorMessage: "must be a gRPC method name such as SayHello",
      description: "Method; empty: all",
    }),
  },
  { additionalProperties: false },
);

const valueMatch = t.Object(
  {
    name: t.String({
      minLength: 1,
      maxLength: 256,
      description: "Name of the header, parameter or cookie",
    }),
    op: oneOf(["equals", "regex", "present", "absent"], {
      default: "equals",
      description: "How the value is compared",
    }),
    value: t.String({ default: "", maxLength: 2048, description: "Value or regular expression" }),
  },
  { additionalProperties: false },
);

const override = (description: string) =>
  nullable(t.Integer({ minimum: 0, maximum: 86_400_000 }), `${description}; null: the service's`);

/** What a client may send. A path may be a string: `/x` is a prefix, `=/x` exact, `~^/x` a regular expression. */
export const routeInput = t.Object(
  {
    name: nullable(name("Unique name"), "Unique name"),
    service_id: nullable(
      t.String({ minLength: 1 }),
      "ID or name of the service; null for a route whose plugins respond",
    ),
    hosts: listOf(
      t.String({ minLength: 1, maxLength: 255 }),
      "Host names, `*.example.com` for all subdomains; empty: any",
    ),
    paths: listOf(
      t.Union([pathMatch, t.String({ minLength: 1, maxLength: 2049 })]),
      "Paths; empty: any",
    ),
    grpc_methods: listOf(grpcMatch, "gRPC services and methods, beside the paths; empty: any"),
    methods: listOf(t.String({ minLength: 1, maxLength: 64 }), "Methods; empty: any", {
      maxItems: 50,
    }),
    headers: listOf(valueMatch, "Conditions on headers, all must hold", { maxItems: 50 }),
    query: listOf(valueMatch, "Conditions on query parameters, all must hold", { maxItems: 50 }),
    cookies: listOf(valueMatch, "Conditions on cookies, all must hold", { maxItems: 50 }),
    client_cidrs: listOf(t.String({ minLength: 1, maxLength: 64 }), "Client networks; empty: any"),
    protocols: t.Array(oneOf(["http", "https"], { description: "Scheme" }), {
      default: ["http", "https"],
      minItems: 1,
      maxItems: 2,
      description: "Schemes that the client may use",
    }),
    listener_ids: listOf(t.String({ minLength: 1 }), "IDs or names of listeners; empty: all", {
      maxItems: 100,
    }),
    priority: integer(0, {
      minimum: -1_000_000,
      maximum: 1_000_000,
      description: "The route with the highest priority wins, before specificity counts",
    }),
    strip_path: flag(false, "Remove the matched prefix before the request goes upstream"),
    prefix_rewrite: nullable(
      t.String({ minLength: 1, maxLength: 2048 }),
      "Path that replaces the matched prefix before the request goes upstream: /new; null: none",
    ),
    path_rewrite: nullable(
      t.Object(
        {
          regex: t.String({
            minLength: 1,
            maxLength: 2048,
            description: "Regular expression on the path",
          }),
          to: t.String({ maxLength: 2048, description: "Replacement; $1 to $9 stand for groups" }),
        },
        { additionalProperties: false },
      ),
      "Rewrite of the path before the request goes upstream",
    ),
    preserve_host: nullable(
      t.Boolean(),
      "true: the client's Host; false: the target's; null: the service's host_header decides",
    ),
    https_redirect: t.Union([t.Boolean(), t.Literal(301), t.Literal(308)], {
      default: false,
      description: "Redirect plain HTTP to HTTPS; true is 308",
    }),
    timeouts: group(
      {
        connect_timeout: override("Milliseconds to connect"),
        response_timeout: override("Milliseconds until the response head"),
        read_timeout: override("Milliseconds between two reads of the response"),
        write_timeout: override("Milliseconds without progress in sending the request"),
        request_timeout: override("Milliseconds for the whole exchange"),
      },
      "Timeouts that override the service's",
    ),
    body_min_rate: nullable(
      t.Integer({ minimum: 0, maximum: 1_000_000_000 }),
      "Minimum average rate of a request body in bytes per second while the gateway waits for the client; below it the gateway responds with 408; 0: no limit; null: the listener's",
    ),
    retries: nullable(
      t.Object(retriesFields, { additionalProperties: false }),
      "Retry policy; replaces the service's as a whole",
    ),
    maintenance: nullable(
      t.Object(
        {
          retry_after: integer(300, {
            minimum: 0,
            maximum: 31_536_000,
            description: "Seconds in Retry-After",
          }),
          html: t.String({
            default: "",
            maxLength: 262_144,
            description: "HTML page; empty: the built-in one",
          }),
          bypass_cidrs: listOf(
            t.String({ minLength: 1, maxLength: 64 }),
            "Client networks that are served as usual",
          ),
        },
        { additionalProperties: false },
      ),
      "Maintenance mode: respond with 503",
    ),
    exact_responses: oneOf(["on", "off"], {
      default: "off",
      description:
        "on: listeners with shared_engines serve its hosts with the full engine, which keeps the Content-Length of streamed responses, trailers and 103",
    }),
    grpc_idle_timeout: integer(0, {
      minimum: 0,
      maximum: 86_400_000,
      description:
        "Milliseconds without a byte in either direction after which the gateway ends a gRPC stream; 0: no limit",
    }),
    grpc_max_message_bytes: integer(0, {
      minimum: 0,
      maximum: 4_294_967_295,
      description: "Largest gRPC message in bytes, in either direction; 0: no limit",
    }),
    websocket: flag(true, "Whether to proxy WebSocket handshakes"),
    enabled: flag(true, "Whether the router uses the route"),
    ...labels,
  },
  { additionalProperties: false, title: "Route" },
);

export type RouteInput = Static<typeof routeInput>;
export type PathMatch = Static<typeof pathMatch>;
export type GrpcMatch = Static<typeof grpcMatch>;
export type ValueMatch = Static<typeof valueMatch>;
export type Route = Readonly<Omit<RouteInput, "paths">> & {
  readonly paths: readonly PathMatch[];
} & Identity;

/** `/x` prefix, `=/x` exact, `~^/x` regex. */
export function pathMatchOf(path: string | PathMatch): PathMatch {
  if (typeof path !== "string") return path;
  if (path.startsWith("=")) return { type: "exact", value: path.slice(1) };
  if (path.startsWith("~")) return { type: "regex", value: path.slice(1) };
  return { type: "prefix", value: path };
}
