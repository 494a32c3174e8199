// A route: which requests it matches and what it does with them; knows nothing of the router.
import { type Static, Type as t } from "@sinclair/typebox";
import { FORMER } from "./decode.ts";
import { defineResource, refersTo, since } from "./resource.ts";
import {
  cidr,
  type FieldForm,
  flag,
  group,
  hostCheck,
  type Identity,
  integer,
  labels,
  listOf,
  name,
  nullable,
  oneOf,
} from "./fields.ts";
import { pathHandling } from "./path-handling.ts";
import { maintenanceFields } from "./maintenance.ts";
import { requestBuffering } from "./request-buffering.ts";
import { retriesFields } from "./retries.ts";
import { upgradeFields } from "./upgrade-fields.ts";
import { grpcMatch, pathMatch, valueMatch, type PathMatch, pathMatchOf } from "./route-match.ts";
import { routeRules } from "./route-rules.ts";
import { asHostName } from "./host-name.ts";

const override = (title: string, description: string) =>
  nullable(t.Integer({ minimum: 0, maximum: 86_400_000 }), `${description}; null: the service's`, {
    title,
    help: "",
    unit: "ms",
    example: "as the service",
  });

const form: FieldForm = {
  groups: [
    { id: "main", title: "Route" },
    {
      id: "match",
      title: "Match",
      text: "A request must match one of the hosts, one of the paths and every condition.",
    },
    {
      id: "conditions",
      title: "Conditions",
      text: "Match by method, header, query parameter, cookie, client network or listener.",
      folded: true,
      summary: "None",
    },
    {
      id: "grpc",
      title: "gRPC",
      text: "Match by gRPC service and method, and limit calls.",
      folded: true,
      summary: "No methods, no limits",
    },
    {
      id: "forward",
      title: "Forwarding",
      text: "How matched requests are sent to the service.",
    },
    {
      id: "limits",
      title: "Timeouts and retries",
      text: "Overrides of the service's settings.",
      folded: true,
      summary: "Timeouts and retries of the service",
    },
    {
      id: "maintenance",
      title: "Maintenance",
      text: "Clients get a maintenance page instead of the application.",
      folded: true,
      summary: "Off",
    },
    {
      id: "labels",
      title: "Priority, tags and description",
      text: "Precedence among matching routes, and labels.",
      folded: true,
      summary: "Priority 0",
    },
  ],
};

/** What a client may send. A path may be a string: `/x` is a prefix, `=/x` exact, `~^/x` a regular expression. */
export const routeInput = t.Object(
  {
    name: nullable(name("Unique name"), "Unique name", {
      help: "Optional display name",
      example: "shop",
    }),
    service_id: nullable(
      refersTo("services", t.String({ minLength: 1 }), { isFilter: true }),
      "ID or name of the service; null for a route whose plugins respond",
      {
        title: "Service",
        help: "Receives the matched requests. None: only plugins respond",
        only: { protocol: ["http", "https", "h2", "h2c", "grpc", "grpcs"] },
      },
    ),
    hosts: listOf(
      asHostName(t.String({ minLength: 1, maxLength: 255, form: { check: hostCheck } })),
      "Host names, `*.example.com` for all subdomains; empty: any",
      {
        form: {
          help: "Host names such as shop.example.com; *.example.com matches every name below. Empty: any",
          example: "shop.example.com",
          group: "match",
        },
      },
    ),
    paths: listOf(
      t.Union([pathMatch, t.String({ minLength: 1, maxLength: 2049 })]),
      "Paths; empty: any",
      { form: { group: "match" } },
    ),
    grpc_methods: since(
      4,
      listOf(grpcMatch, "gRPC services and methods, beside the paths; empty: any", {
        form: {
          title: "gRPC methods",
          help: "One of them, or one of the paths, must match. An empty method is all methods of the service; an empty service is any. Empty: the paths decide alone",
          group: "grpc",
          input: "row",
        },
      }),
    ),
    methods: listOf(t.String({ minLength: 1, maxLength: 64 }), "Methods; empty: any", {
      maxItems: 50,
      form: { help: "Empty: all", example: "GET", group: "conditions" },
    }),
    headers: listOf(valueMatch, "Conditions on headers, all must hold", {
      maxItems: 50,
      form: { help: "All must match", group: "conditions", order: 1, input: "row" },
    }),
    query: listOf(valueMatch, "Conditions on query parameters, all must hold", {
      maxItems: 50,
      form: {
        title: "Query parameters",
        help: "All must match",
        group: "conditions",
        order: 1,
        input: "row",
      },
    }),
    cookies: listOf(valueMatch, "Conditions on cookies, all must hold", {
      maxItems: 50,
      form: { help: "All must match", group: "conditions", order: 1, input: "row" },
    }),
    client_cidrs: listOf(cidr, "Client networks; empty: any", {
      form: {
        title: "Client networks",
        help: "Empty: any",
        example: "10.0.0.0/8",
        group: "conditions",
      },
    }),
    protocols: t.Array(oneOf(["http", "https"], { description: "Scheme" }), {
      default: ["http", "https"],
      minItems: 1,
      maxItems: 2,
      description: "Schemes that the client may use",
      form: { title: "Schemes", help: "", group: "conditions" },
    }),
    listener_ids: listOf(
      refersTo("listeners", t.String({ minLength: 1 }), { isFilter: true }),
      "IDs or names of listeners; empty: all",
      {
        maxItems: 100,
        form: {
          title: "Listeners",
          help: "Only requests received there. Empty: all",
          group: "conditions",
        },
      },
    ),
    priority: integer(0, {
      minimum: -1_000_000,
      maximum: 1_000_000,
      description: "The route with the highest priority wins, before specificity counts",
      form: {
        help: "The highest priority wins before anything else is compared. At equal priority, an exact host precedes *.example.com, an exact path precedes a longer prefix, and a prefix precedes a regular expression",
        group: "labels",
      },
    }),
    strip_path: flag(false, "Remove the matched prefix before the request goes upstream", {
      title: "Strip the path",
      help: "With the path /shop, a request for /shop/cart is forwarded as /cart",
      group: "forward",
      order: 1,
    }),
    prefix_rewrite: nullable(
      t.String({ minLength: 1, maxLength: 2048 }),
      "Path that replaces the matched prefix before the request goes upstream: /new; null: none",
      {
        title: "Replace the prefix",
        help: "With the path /shop and /store here, a request for /shop/cart is forwarded as /store/cart",
        example: "/store",
        check: { pattern: "^/[^?#\\s]*$", message: "must start with / and have no query" },
        group: "forward",
        order: 1,
      },
    ),
    path_rewrite: nullable(
      t.Object(
        {
          regex: t.String({
            minLength: 1,
            maxLength: 2048,
            description: "Regular expression on the path",
            form: { title: "Pattern", help: "", example: "^/old/(.*)$" },
          }),
          to: t.String({
            maxLength: 2048,
            description: "Replacement; $1 to $9 stand for groups",
            form: {
              title: "Replacement",
              help: "$1 to $9 are the capture groups",
              example: "/new/$1",
            },
          }),
        },
        { additionalProperties: false },
      ),
      "Rewrite of the path before the request goes upstream",
      {
        title: "Rewrite the path",
        help: "With a regular expression, applied after the prefix",
        group: "forward",
        order: 1,
      },
    ),
    preserve_host: nullable(
      t.Boolean(),
      "true: the client's Host; false: the target's; null: the service's host_header decides",
      {
        title: "Host header",
        help: "",
        options: {
          null: "Default of the service",
          true: "Host of the client's request",
          false: "Host of the target",
        },
        group: "forward",
      },
    ),
    https_redirect: t.Union([t.Boolean(), t.Literal(301), t.Literal(308)], {
      default: false,
      description: "Redirect plain HTTP to HTTPS; true is 308",
      form: {
        title: "Redirect HTTP to HTTPS",
        help: "Responds to plain HTTP requests with a redirect; requires a certificate",
        options: {
          false: "No",
          true: "Yes, and keep the method",
          "308": "Yes, and keep the method (308)",
          "301": "Yes, for old clients (301)",
        },
        group: "forward",
        order: -1,
      },
    }),
    timeouts: group(
      {
        connect_timeout: override("Connect", "Milliseconds to connect"),
        response_timeout: override(
          "First byte of the response",
          "Milliseconds until the response head",
        ),
        read_timeout: override(
          "Between two reads of the response",
          "Milliseconds between two reads of the response",
        ),
        write_timeout: override(
          "Between two writes of the request",
          "Milliseconds without progress in sending the request",
        ),
        request_timeout: override("Whole request", "Milliseconds for the whole exchange"),
      },
      "Timeouts that override the service's",
      { group: "limits" },
    ),
    body_min_rate: nullable(
      t.Integer({ minimum: 0, maximum: 1_000_000_000 }),
      "Minimum average rate of a request body in bytes per second while the gateway waits for the client; below it the gateway responds with 408; 0: no limit; null: the listener's",
      {
        title: "Minimum request body rate",
        help: "Bytes per second",
        zero: "no minimum",
        example: "as the listener",
        group: "limits",
      },
    ),
    retries: nullable(
      t.Object(retriesFields, { additionalProperties: false }),
      "Retry policy; replaces the service's as a whole",
      {
        title: "Override retries",
        help: "Replaces the retry settings of the service",
        group: "limits",
      },
    ),
    maintenance: nullable(
      t.Object(maintenanceFields, { additionalProperties: false }),
      "Maintenance mode: respond with 503",
      { title: "Respond with the maintenance page", help: "", group: "maintenance" },
    ),
    grpc_idle_timeout: since(
      4,
      integer(0, {
        minimum: 0,
        maximum: 86_400_000,
        description:
          "Milliseconds without a byte in either direction after which the gateway ends a gRPC stream; 0: no limit",
        form: {
          title: "Idle timeout of a call",
          help: "Ends a call in which neither side sends anything",
          zero: "no limit",
          group: "grpc",
        },
      }),
    ),
    grpc_max_message_bytes: since(
      4,
      integer(0, {
        minimum: 0,
        maximum: 4_294_967_295,
        description: "Largest gRPC message in bytes, in either direction; 0: no limit",
        form: {
          title: "Maximum message size",
          help: "In either direction; messages may follow each other without limit",
          zero: "no limit",
          group: "grpc",
        },
      }),
    ),
    path_handling: pathHandling,
    request_buffering: requestBuffering,
    ...upgradeFields,
    enabled: flag(true, "Whether the router uses the route", {
      help: "Off: it matches no request",
    }),
    ...labels,
  },
  {
    additionalProperties: false,
    title: "Route",
    form,
    [FORMER]: {
      exact_responses: 'is gone: on listeners with engine "sluice" all responses are exact',
    },
  },
);

export type RouteInput = Static<typeof routeInput>;
export type GrpcMatch = Static<typeof grpcMatch>;
export type ValueMatch = Static<typeof valueMatch>;
export type Route = Readonly<Omit<RouteInput, "paths">> & {
  readonly paths: readonly PathMatch[];
} & Identity;

export const routes = defineResource<Route>({
  word: "route",
  input: routeInput,
  normalize: (route: RouteInput) => ({ ...route, paths: route.paths.map(pathMatchOf) }),
  rules: routeRules,
  nameField: "name",
  columns: { name: { of: ({ name }) => name, isUnique: true, isNullable: true } },
  api: { tag: "Routes", schema: "Route" },
});
