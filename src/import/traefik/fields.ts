// Names and types of Traefik's dynamic configuration, which is case-insensitive and whose labels are all text; converts nothing.
import { type Document, isDocument } from "../../control/body.ts";

/** `any`: unchanged. A record lists members; `mapOf` has free names, `listOf` an item. */
type Shape =
  | "any"
  | "text"
  | "number"
  | "flag"
  | "texts"
  | { readonly mapOf: Shape }
  | { readonly listOf: Shape }
  | { readonly members: Readonly<Record<string, Shape>> };

const members = (shapes: Readonly<Record<string, Shape>>): Shape => ({ members: shapes });
const mapOf = (shape: Shape): Shape => ({ mapOf: shape });
const listOf = (shape: Shape): Shape => ({ listOf: shape });

const tls = members({
  options: "text",
  certResolver: "text",
  passthrough: "flag",
  domains: listOf(members({ main: "text", sans: "texts" })),
});

const cookie = members({
  name: "text",
  secure: "flag",
  httpOnly: "flag",
  sameSite: "text",
  maxAge: "number",
  path: "text",
  domain: "text",
});

const sticky = members({ cookie });

const healthCheck = members({
  scheme: "text",
  mode: "text",
  path: "text",
  method: "text",
  status: "number",
  port: "number",
  interval: "any",
  unhealthyInterval: "any",
  timeout: "any",
  hostname: "text",
  followRedirects: "flag",
  headers: mapOf("text"),
});

const server = members({
  url: "text",
  address: "text",
  scheme: "text",
  port: "text",
  weight: "number",
  preservePath: "flag",
  tls: "flag",
});

const loadBalancer = members({
  servers: listOf(server),
  server,
  sticky,
  healthCheck,
  passiveHealthCheck: "any",
  passHostHeader: "flag",
  strategy: "text",
  serversTransport: "text",
  responseForwarding: "any",
  proxyProtocol: members({ version: "number" }),
  terminationDelay: "number",
});

const service = members({
  loadBalancer,
  weighted: members({
    services: listOf(members({ name: "text", weight: "number" })),
    sticky,
    healthCheck: "any",
  }),
  mirroring: members({
    service: "text",
    mirrors: listOf(members({ name: "text", percent: "number" })),
    mirrorBody: "flag",
    maxBodySize: "number",
    healthCheck: "any",
  }),
  failover: members({ service: "text", fallback: "text", healthCheck: "any" }),
});

const ipStrategy = members({ depth: "number", excludedIPs: "texts", ipv6Subnet: "number" });
const sourceCriterion = members({
  ipStrategy,
  requestHeaderName: "text",
  requestHost: "flag",
});

const auth = members({
  users: "texts",
  usersFile: "text",
  realm: "text",
  removeHeader: "flag",
  headerField: "text",
});

const allowList = members({ sourceRange: "texts", ipStrategy, rejectStatusCode: "number" });

const headers = members({
  customRequestHeaders: mapOf("text"),
  customResponseHeaders: mapOf("text"),
  accessControlAllowCredentials: "flag",
  accessControlAllowHeaders: "texts",
  accessControlAllowMethods: "texts",
  accessControlAllowOriginList: "texts",
  accessControlAllowOriginListRegex: "texts",
  accessControlExposeHeaders: "texts",
  accessControlMaxAge: "number",
  addVaryHeader: "flag",
  allowedHosts: "texts",
  hostsProxyHeaders: "texts",
  sslRedirect: "flag",
  sslTemporaryRedirect: "flag",
  sslHost: "text",
  sslForceHost: "flag",
  sslProxyHeaders: mapOf("text"),
  stsSeconds: "number",
  stsIncludeSubdomains: "flag",
  stsPreload: "flag",
  forceSTSHeader: "flag",
  frameDeny: "flag",
  customFrameOptionsValue: "text",
  contentTypeNosniff: "flag",
  browserXssFilter: "flag",
  customBrowserXSSValue: "text",
  contentSecurityPolicy: "text",
  contentSecurityPolicyReportOnly: "text",
  publicKey: "text",
  referrerPolicy: "text",
  featurePolicy: "text",
  permissionsPolicy: "text",
  isDevelopment: "flag",
});

const middleware = members({
  addPrefix: members({ prefix: "text" }),
  basicAuth: auth,
  digestAuth: auth,
  buffering: members({
    maxRequestBodyBytes: "number",
    memRequestBodyBytes: "number",
    maxResponseBodyBytes: "number",
    memResponseBodyBytes: "number",
    retryExpression: "text",
  }),
  chain: members({ middlewares: "texts" }),
  circuitBreaker: members({
    expression: "text",
    checkPeriod: "any",
    fallbackDuration: "any",
    recoveryDuration: "any",
    responseCode: "number",
  }),
  compress: members({
    excludedContentTypes: "texts",
    includedContentTypes: "texts",
    minResponseBodyBytes: "number",
    encodings: "texts",
    defaultEncoding: "text",
  }),
  contentType: members({ autoDetect: "flag" }),
  errors: members({ status: "texts", service: "text", query: "text", statusRewrites: "any" }),
  forwardAuth: members({
    address: "text",
    trustForwardHeader: "flag",
    authResponseHeaders: "texts",
    authResponseHeadersRegex: "text",
    authRequestHeaders: "texts",
    addAuthCookiesToResponse: "texts",
    headerField: "text",
    forwardBody: "flag",
    maxBodySize: "number",
    preserveLocationHeader: "flag",
    preserveRequestMethod: "flag",
    tls: members({
      ca: "text",
      caOptional: "flag",
      cert: "text",
      key: "text",
      insecureSkipVerify: "flag",
    }),
  }),
  grpcWeb: members({ allowOrigins: "texts" }),
  headers,
  inFlightReq: members({ amount: "number", sourceCriterion }),
  ipAllowList: allowList,
  ipWhiteList: allowList,
  passTLSClientCert: "any",
  plugin: "any",
  rateLimit: members({
    average: "number",
    period: "any",
    burst: "number",
    sourceCriterion,
    redis: "any",
  }),
  redirectRegex: members({ regex: "text", replacement: "text", permanent: "flag" }),
  redirectScheme: members({ scheme: "text", port: "text", permanent: "flag" }),
  replacePath: members({ path: "text" }),
  replacePathRegex: members({ regex: "text", replacement: "text" }),
  retry: members({ attempts: "number", initialInterval: "any" }),
  stripPrefix: members({ prefixes: "texts", forceSlash: "flag" }),
  stripPrefixRegex: members({ regex: "texts" }),
});

const router = members({
  entryPoints: "texts",
  rule: "text",
  ruleSyntax: "text",
  priority: "number",
  service: "text",
  middlewares: "texts",
  tls,
  observability: "any",
});

const serversTransport = members({
  serverName: "text",
  insecureSkipVerify: "flag",
  rootCAs: "any",
  certificates: "any",
  maxIdleConnsPerHost: "number",
  forwardingTimeouts: members({
    dialTimeout: "any",
    responseHeaderTimeout: "any",
    idleConnTimeout: "any",
    readIdleTimeout: "any",
    pingTimeout: "any",
  }),
  disableHTTP2: "flag",
});

const entryPoint = members({
  address: "text",
  forwardedHeaders: members({ insecure: "flag", trustedIPs: "texts" }),
  proxyProtocol: members({ insecure: "flag", trustedIPs: "texts" }),
  http: members({
    middlewares: "texts",
    tls,
    redirections: members({
      entryPoint: members({ to: "text", scheme: "text", permanent: "flag", priority: "number" }),
    }),
  }),
});

const acme = members({
  email: "text",
  caServer: "text",
  keyType: "text",
  dnsChallenge: members({ provider: "text" }),
});

const root = members({
  entryPoints: mapOf(entryPoint),
  certificatesResolvers: mapOf(members({ acme })),
  ...Object.fromEntries(
    ["providers", "api", "log", "accessLog", "metrics", "tracing", "global", "ping"].map((name) => [
      name,
      "any",
    ]),
  ),
  http: members({
    routers: mapOf(router),
    services: mapOf(service),
    middlewares: mapOf(middleware),
    serversTransports: mapOf(serversTransport),
  }),
  tcp: members({
    routers: mapOf(router),
    services: mapOf(service),
    middlewares: mapOf(members({ ipAllowList: allowList, ipWhiteList: allowList })),
    serversTransports: "any",
  }),
  udp: members({ routers: mapOf(router), services: mapOf(service) }),
  tls: "any",
});

/** Called for a value of the wrong type, which is left out. */
export type OnInvalid = (path: string, message: string) => void;

/** The configuration with the names of Traefik's reference, and with numbers, flags and lists in place of texts. */
export function withKnownNames(configuration: Document, onInvalid: OnInvalid): Document {
  const made = shaped(configuration, root, { path: "", onInvalid });
  return isDocument(made) ? made : {};
}

interface Walk {
  readonly path: string;
  readonly onInvalid: OnInvalid;
}

function shaped(value: unknown, shape: Shape, walk: Walk): unknown {
  const below = (name: string | number): Walk => {
    const step = typeof name === "number" ? `[${name}]` : walk.path === "" ? name : `.${name}`;
    return { ...walk, path: `${walk.path}${step}` };
  };
  const wrong = (message: string): null => {
    walk.onInvalid(walk.path, message);
    return null;
  };
  if (value === null || value === undefined || shape === "any") return value;
  if (typeof shape === "string") return scalar(value, shape) ?? wrong(WANTED[shape]);
  if ("listOf" in shape) {
    if (!Array.isArray(value)) return wrong("must be a list");
    const items: readonly unknown[] = value;
    return items.map((item, at) => shaped(item, shape.listOf, below(at)) ?? {});
  }
  // A label such as `tls=true` enables an object with its defaults.
  if (typeof value === "boolean" || typeof value === "string") {
    if (/^(?:true|)$/i.test(String(value))) return {};
    return /^false$/i.test(String(value)) ? null : wrong("must be an object");
  }
  if (!isDocument(value)) return wrong("must be an object");
  const known = "mapOf" in shape ? null : namesOf(shape.members);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      if ("mapOf" in shape) return [name, shaped(inner, shape.mapOf, below(name))];
      const canonical = known?.get(name.toLowerCase());
      if (canonical === undefined) return [name, inner];
      return [canonical, shaped(inner, shape.members[canonical] ?? "any", below(canonical))];
    }),
  );
}

const namesOf = (shapes: Readonly<Record<string, Shape>>): ReadonlyMap<string, string> =>
  new Map(Object.keys(shapes).map((name) => [name.toLowerCase(), name]));

const WANTED = {
  text: "must be text",
  number: "must be a number",
  flag: "must be true or false",
  texts: "must be a list of texts",
} as const;

/** Null: it has another type. */
function scalar(value: unknown, type: keyof typeof WANTED): unknown {
  if (type === "texts") {
    if (typeof value === "string")
      return value.split(",").flatMap((item) => (item.trim() === "" ? [] : [item.trim()]));
    if (!Array.isArray(value)) return null;
    const items = value.map((item: unknown) => scalar(item, "text"));
    return items.includes(null) ? null : items;
  }
  if (type === "text") {
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    return typeof value === "string" ? value : null;
  }
  const text = typeof value === "string" ? value.trim() : "";
  if (type === "number") {
    if (typeof value === "number") return value;
    return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : null;
  }
  if (typeof value === "boolean") return value;
  if (/^(?:true|1|t)$/i.test(text)) return true;
  return /^(?:false|0|f)$/i.test(text) ? false : null;
}
