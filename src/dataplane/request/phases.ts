// The phases of a client request: a closed list, in the order in which they run; knows no request.

/** One phase of the request path. `make docs` writes the list into docs/request-life.md; a test compares them. */
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
    runs: "the gateway parses Host, framing and target and normalizes them",
    ends: "400 for ambiguous requests, 414 for a target that is too long",
    changes: "nothing",
  }),
  step("challenge", "request/pipeline.ts", {
    runs: "the gateway looks up the token of an ACME challenge, while an order is open",
    ends: "200 with the key authorization: no configuration can prevent a renewal",
    changes: "nothing",
  }),
  step("shed", "request/pipeline.ts", {
    runs: "the gateway checks memory, file descriptors, the TLS server name and the client's aborted requests",
    ends: "503 under memory or descriptor pressure, 421 for a host of another certificate and for gRPC on an engine without trailers, 429 for a client that aborts too many requests",
    changes: "nothing",
  }),
  step("route", "request/pipeline.ts", {
    runs: "the router finds the route; the route may respond itself",
    ends: "a redirect to HTTPS, 503 in maintenance; without a route the default site or 404, after the plugins",
    changes: "nothing",
  }),
  handlers("pre_auth", {
    runs: "plugins that need no identity; the gateway has stripped the client's identity headers",
    ends: "a response or refusal of a plugin",
    changes: "the upstream request",
  }),
  handlers("auth", {
    runs: "authentication plugins",
    ends: "401, 403 or a redirect to a sign-in page",
    changes: "the consumer, and with it the plugin chain",
  }),
  handlers("access", {
    runs: "rate limits, access policies and validation",
    ends: "403, 413, 429 or another response of a plugin",
    changes: "the service of the request",
  }),
  handlers("request", {
    runs: "plugins that change the upstream request",
    ends: "a response of a plugin, such as a cache hit",
    changes: "method, path, query, headers, body and host of the upstream request",
  }),
  step("exchange", "request/proxy-transaction.ts", {
    runs: "upstream attempts with retries and timeouts on pooled connections, or a WebSocket handshake",
    ends: "431, 503, 508 before the first attempt; 502, 504 when no target responds",
    changes: "removes hop-by-hop headers, adds forwarding headers",
  }),
  handlers("response", {
    runs: "response handlers of plugins, in reverse order; those outside of a plugin also see its own response",
    ends: "nothing: the target has responded",
    changes: "status and headers; plugins may replace the body",
  }),
  handlers("body", {
    runs: "body transforms that plugins requested in `response`",
    ends: "the gateway aborts the response when a plugin fails",
    changes: "bytes of the body",
  }),
  step("respond", "request/respond.ts", {
    runs: "the only exit: status and body rules, sticky cookie, request id, debug headers",
    ends: "every request without an upgrade",
    changes: "adds the gateway's headers",
  }),
  handlers("log", {
    runs: "metrics, the request list and logging plugins, once after the last byte",
    ends: "nothing",
    changes: "nothing",
  }),
];
