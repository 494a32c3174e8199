// Converts middlewares of Traefik for authentication and addresses of clients to plugins; knows no router.
import { passwordHashProblem } from "../../crypto/foreign-password.ts";
import type { Members } from "../members.ts";
import { durationOf } from "./durations.ts";
import type { Converted, MiddlewareConverter } from "./middlewares.ts";

/** Hashes that Traefik itself compares. */
const COMPARED = /^(?:\$(?:2[aby]|apr1|1)\$|\{SHA\})/;

const basicAuth: MiddlewareConverter = (settings) => {
  const users = settings.texts("users").flatMap((text) => {
    const at = text.indexOf(":");
    const username = text.slice(0, at);
    // Templates for Docker Compose escape each $.
    const hash = text
      .slice(at + 1)
      .trim()
      .replaceAll("$$", "$");
    if (at > 0 && COMPARED.test(hash) && passwordHashProblem(hash) === null)
      return [{ username, password_hash: hash }];
    settings.report.omitted(
      `user "${at > 0 ? username : "?"}" of ${settings.label}`,
      "set a new password: its hash is none of bcrypt (htpasswd -nB), MD5 (-nm) and SHA (-ns)",
    );
    return [];
  });
  settings.omit("usersFile", "the import reads no files: add its users to the plugin basic-auth");
  const realm = settings.text("realm");
  const field = settings.text("headerField");
  const hidesCredentials = settings.flag("removeHeader") ?? false;
  if (users.length === 0) return { lost: `users of ${settings.label}` };
  if (field !== null)
    settings.changed(
      "headerField",
      `${field} is removed from requests: use ids of consumers instead`,
    );
  return {
    plugins: [
      {
        name: "basic-auth",
        protects: true,
        config: {
          users,
          consumers: false,
          hide_credentials: hidesCredentials,
          realm: (realm ?? "traefik").replaceAll(/[^ -~]|["\\]/g, "-").slice(0, 128),
          run_on_preflight: true,
        },
      },
      ...removed(field === null ? [] : [field]),
    ],
  };
};

/** A header of the client must not pass for one that a middleware sets. */
const removed = (names: readonly string[]) =>
  names.length === 0
    ? []
    : [{ name: "transform", protects: true, config: { request: { headers: { remove: names } } } }];

/** Traefik sends all headers of the client to the server; these are what known servers read. */
const ASKED = [
  ...["Authorization", "Cookie", "Accept", "Accept-Language", "User-Agent", "Origin", "Referer"],
  ...["X-Requested-With", "X-API-Key"],
];

const forwardAuth: MiddlewareConverter = (settings) => {
  const url = settings.text("address") ?? "";
  const toTarget = settings.texts("authResponseHeaders");
  const asked = settings.texts("authRequestHeaders");
  settings.omit("trustForwardHeader", "set trusted_proxies", false);
  settings.omit("addAuthCookiesToResponse", "all cookies of the server are sent to the client");
  settings.omit("preserveLocationHeader", "the header Location is sent as it is", true);
  settings.omit("maxBodySize", "the body is not sent", -1);
  const unknown = ["authResponseHeadersRegex", "headerField", "forwardBody"].filter((name) => {
    const value = settings.raw(name);
    return value !== null && value !== false && value !== "";
  });
  if (settings.flag("preserveRequestMethod") === true) unknown.push("preserveRequestMethod");
  const tls = settings.object("tls");
  const isTlsSet = (tls?.names.length ?? 0) > 0;
  tls?.ignoreRest();
  if (isTlsSet)
    settings.changed("tls", "the certificate of the server must be valid for the system");
  if (asked.length === 0)
    settings.changed("authRequestHeaders", `only these headers are sent: ${ASKED.join(", ")}`);
  if (unknown.length > 0) return { lost: `${unknown.join(", ")} of ${settings.label}` };
  return {
    plugins: [
      {
        name: "forward-auth",
        protects: true,
        config: {
          url,
          request_headers: asked.length === 0 ? ASKED : asked,
          response_headers_to_upstream: toTarget,
          timeout: 30_000,
          status_on_error: 500,
          run_on_preflight: true,
        },
      },
    ],
  };
};

const allowList: MiddlewareConverter = (settings) => {
  const ranges = settings.texts("sourceRange");
  const status = settings.bounded("rejectStatusCode", { min: 400, max: 599 }) ?? 403;
  const strategy = settings.object("ipStrategy");
  const readsForwarded =
    (strategy?.number("depth") ?? 0) > 0 || (strategy?.has("excludedIPs") ?? false);
  strategy?.ignoreRest();
  if (readsForwarded)
    settings.changed(
      "ipStrategy",
      "set trusted_proxies to the proxies in front of the gateway first",
    );
  if (readsForwarded || ranges.length === 0) return { lost: `addresses of ${settings.label}` };
  return {
    plugins: [{ name: "ip-restriction", protects: true, config: { allow: ranges, status } }],
  };
};

/** By address unless the middleware says otherwise. */
function keyOf(settings: Members, usual: "ip" | "route"): string {
  const criterion = settings.object("sourceCriterion");
  if (criterion === null) return usual;
  const header = criterion.text("requestHeaderName");
  const strategy = criterion.object("ipStrategy");
  if (strategy !== null && strategy.names.length > 0)
    settings.changed(
      "sourceCriterion",
      "set trusted_proxies to the proxies in front of the gateway",
    );
  strategy?.ignoreRest();
  if (header !== null && header !== "") return `header:${header}`;
  if (criterion.flag("requestHost") !== true) return strategy === null ? usual : "ip";
  settings.changed("sourceCriterion", "requests are counted by route instead of by host");
  return "route";
}

const rateLimit: MiddlewareConverter = (settings) => {
  const average = settings.number("average") ?? 0;
  const burst = settings.bounded("burst", { min: 1, max: 1_000_000_000 }) ?? 1;
  const period = durationOf(settings.raw("period")) ?? 1000;
  const key = keyOf(settings, "ip");
  settings.omit("redis", "use --counters to share limits among nodes");
  if (average <= 0 || period <= 0) return {};
  // Windows are whole seconds.
  const factor = period < 1000 ? 1000 / period : 1;
  const requests = Math.max(1, Math.round(average * factor));
  const window = Math.max(1, Math.round((period * factor) / 1000));
  const limit = { name: "limit-1", requests, window, algorithm: "token_bucket", burst, key };
  return { plugins: [{ name: "rate-limit", config: { limits: [limit], headers: "off" } }] };
};

const inFlightReq: MiddlewareConverter = (settings) => {
  const max = settings.bounded("amount", { min: 1, max: 1_000_000 });
  const key = keyOf(settings, "route");
  return max === null ? {} : { plugins: [{ name: "concurrency-limit", config: { max, key } }] };
};

const lost =
  (why: string): MiddlewareConverter =>
  (settings): Converted => {
    settings.drop(why);
    return { lost: settings.label };
  };

export const access: Readonly<Record<string, MiddlewareConverter>> = {
  basicAuth,
  digestAuth: lost("this gateway has no digest authentication: use the plugin basic-auth"),
  forwardAuth,
  ipAllowList: allowList,
  ipWhiteList: allowList,
  rateLimit,
  inFlightReq,
  passTLSClientCert: lost("use the plugin mtls-auth"),
  plugin: lost("plugins of Traefik have no equivalent"),
};
