// The phases of a client request: a closed list, in the order in which they run; knows no request.

/** One step of the request path. docs/request-life.md holds the list for people; a test holds it to this one. */
export interface Phase {
  readonly name: string;
  /** What runs. */
  readonly runs: string;
  /** What may end the request here. */
  readonly ends: string;
  /** What it may change. */
  readonly changes: string;
  /** The file to open, below src/dataplane/. */
  readonly file: string;
  /** Whether plugins have a handler for it. */
  readonly isForPlugins: boolean;
}

const step = (
  name: string,
  file: string,
  about: Pick<Phase, "runs" | "ends" | "changes">,
): Phase => ({ name, file, ...about, isForPlugins: false });

/** Handlers of all plugins of the route, in their order. */
const handlers = (name: string, about: Pick<Phase, "runs" | "ends" | "changes">): Phase => ({
  name,
  file: "plugin/chain-cursor.ts",
  ...about,
  isForPlugins: true,
});

export const phases: readonly Phase[] = [
  step("read", "request/client-request.ts", {
    runs: "Host, framing and target are brought into their one canonical form",
    ends: "400 for what can be read in two ways, 414 for a target that is too long",
    changes: "nothing",
  }),
  step("challenge", "request/pipeline.ts", {
    runs: "a token that a CA asks for is looked up, while an order waits for it",
    ends: "200 with the proof: nothing that is configured may keep a certificate from being renewed",
    changes: "nothing",
  }),
  step("shed", "request/pipeline.ts", {
    runs: "memory, descriptors, the name of the TLS handshake and aborted requests of the client are looked at",
    ends: "503 when the process is short of something, 421 for a host of another certificate, 429 for a client that aborts too much",
    changes: "nothing",
  }),
  step("route", "request/pipeline.ts", {
    runs: "the router finds the route; the route may respond by itself",
    ends: "a redirect to HTTPS, 503 in maintenance; without a route the default site or 404, after the plugins",
    changes: "nothing",
  }),
  handlers("pre_auth", {
    runs: "plugins that need no authenticated client, after the gateway has stripped identity fields that the client sent",
    ends: "a response or refusal of a plugin",
    changes: "the request that goes upstream",
  }),
  handlers("auth", {
    runs: "authentication plugins",
    ends: "401, 403 or a redirect to a sign-in page",
    changes: "the identity, and with it the chain: a consumer may have plugins of its own",
  }),
  handlers("access", {
    runs: "limits, policies and validation",
    ends: "403, 413, 429 and whatever else a plugin decides",
    changes: "the service that the request goes to",
  }),
  handlers("request", {
    runs: "plugins that change what goes upstream",
    ends: "a response of a plugin, such as a cache hit",
    changes: "method, path, query, fields, body and host of the request that goes upstream",
  }),
  step("exchange", "request/proxy-transaction.ts", {
    runs: "attempts on targets with retries and timeouts, each on a connection of the pool; or a WebSocket handshake",
    ends: "431, 503, 508 before the first attempt; 502, 504 when no target responds",
    changes: "hop-by-hop fields go, forwarded fields come",
  }),
  handlers("response", {
    runs: "plugins look at the response head, in reverse order; a plugin's own response is seen by those outside of it",
    ends: "nothing: the target has done its work",
    changes: "status and fields; the body may be replaced",
  }),
  handlers("body", {
    runs: "the body passes what plugins asked for in `response`",
    ends: "the response breaks off when a plugin fails",
    changes: "bytes of the body",
  }),
  step("respond", "request/respond.ts", {
    runs: "the only exit: status and body rules, sticky cookie, request id, debug fields",
    ends: "every request that was not upgraded",
    changes: "the fields that the gateway adds",
  }),
  handlers("log", {
    runs: "counters, the list of recent requests and plugins that log, after the last byte, exactly once",
    ends: "nothing",
    changes: "nothing",
  }),
];
