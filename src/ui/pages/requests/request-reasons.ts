// Texts for the reasons of requests, and the plugins that report them; renders nothing.

export interface Explained {
  /** The reason code: `ip.denied`. */
  readonly word: string;
  /** The text; null: unknown reason, show the code. */
  readonly text: string | null;
  /** The plugin that reported it; null: the gateway itself. */
  readonly plugin: string | null;
}

/** Proxy-Status error types of RFC 9209 that the gateway uses. */
const own: Readonly<Record<string, string>> = {
  dns_error: "The name of the target could not be resolved.",
  dns_timeout: "The DNS lookup of the target timed out.",
  destination_not_found: "No route matched.",
  destination_unavailable:
    "No target is available: all are unhealthy, disabled or under maintenance.",
  connection_refused: "The target refused the connection. Check that the application is running.",
  connection_terminated: "The target closed the connection without a response.",
  connection_timeout: "The connection to the target timed out.",
  connection_read_timeout: "Reading the response of the target timed out.",
  connection_write_timeout: "Writing the request to the target timed out.",
  connection_limit_reached: "Too many requests were in flight.",
  "body.too_slow": "The client sent the body of its request too slowly.",
  "grpc.body_not_read": "A plugin asked for the body: messages of gRPC calls are not read.",
  "grpc.deadline": "The client's deadline for the gRPC call passed.",
  "grpc.idle": "The gRPC stream was idle for longer than grpc_idle_timeout.",
  "grpc.message_too_large": "A message of the gRPC call is too large.",
  "overload.memory": "The gateway reached its memory limit.",
  "overload.descriptors": "The gateway reached its limit of open files and sockets.",
  "aborts.connection": "The client aborted too many requests on this connection.",
  "aborts.address": "Clients at this address aborted too many requests.",
  tls_protocol_error: "The TLS handshake with the target failed.",
  tls_certificate_error: "The certificate of the target is not trusted.",
  tls_alert_received: "The target requires a client certificate.",
  http_request_error: "The request is not valid HTTP.",
  http_request_denied: "The request was refused.",
  http_response_incomplete: "The target closed the connection before the end of the response.",
  http_response_header_section_size: "The response head of the target is too large.",
  http_response_timeout: "The response of the target timed out.",
  http_upgrade_failed: "The target did not accept the protocol upgrade.",
  http_protocol_error: "The response of the target is not valid HTTP.",
  proxy_internal_error: "Internal error of the gateway. See its log.",
  proxy_configuration_error: "The TLS settings for the target are not valid.",
  proxy_loop_detected: "Loop detected: this gateway already forwarded the request.",
};

const ofPlugins: Readonly<Record<string, string>> = {
  "acl.denied": "A group of the client is denied.",
  "acl.unknown": "The client is not authenticated, which the group rules require.",
  "auth.basic.missing": "No user name and password in the request.",
  "auth.basic.wrong": "User name or password is wrong.",
  "auth.basic.throttled": "Too many failed attempts from this client.",
  "auth.forward.denied": "The authorization service denied the request.",
  "auth.forward.open": "The authorization service is not reachable; the request was allowed.",
  "auth.forward.unavailable": "The authorization service is not reachable.",
  "auth.jwt.missing": "No token in the request.",
  "auth.jwt.scope": "The token does not allow this request.",
  "auth.jwt.keys_unavailable": "The keys to verify tokens could not be fetched.",
  "auth.key.expired": "The API key has expired.",
  "auth.key.missing": "No API key in the request.",
  "auth.key.unknown": "The API key is unknown.",
  "auth.mtls.missing": "The client presented no certificate.",
  "auth.oidc.none": "No session.",
  "auth.oidc.begin": "Redirected to sign in.",
  "auth.oidc.done": "Signed in.",
  "blocklist.open": "The list of denied addresses is unavailable; the request was allowed.",
  "blocklist.unavailable": "The list of denied addresses is unavailable.",
  "bot.denied": "The user agent is denied.",
  "bot.missing_ua": "No User-Agent header.",
  "cache.hit": "Served from the cache.",
  "cache.collapsed": "Served the response to another request, which it waited for.",
  "cache.failed": "Served a stale response from the cache, because the service fails.",
  "cache.stale": "Served a stale response from the cache.",
  "cache.only": "The request allows only a cached response, and none is cached.",
  "circuit.open": "The circuit breaker is open: the target failed too often.",
  "cl.full": "Too many concurrent requests.",
  "cl.timeout": "The request timed out in the queue.",
  "cl.gone": "The client disconnected in the queue.",
  "cors.origin": "The origin is not allowed.",
  "cors.preflight": "CORS preflight request.",
  "crowdsec.ban": "CrowdSec has decided to ban the client's address.",
  "crowdsec.captcha": "CrowdSec demands a captcha of the client's address.",
  "crowdsec.open": "The decisions of CrowdSec are unavailable; the request was allowed.",
  "crowdsec.unavailable": "The decisions of CrowdSec are unavailable.",
  "csrf.origin": "Cross-site request.",
  "csrf.token": "The CSRF token is wrong.",
  "grpc-web.malformed": "The gRPC-Web request is malformed.",
  "grpc-web.too_large": "A message of the gRPC-Web request is too large.",
  "ip.denied": "The client's network is denied.",
  "ip.not_allowed": "The client's network is not allowed.",
  "rl.exceeded": "Rate limit exceeded.",
  "size.body": "The request body is too large.",
  "size.headers": "The request headers are too large.",
  "size.uri": "The request URL is too long.",
  "split.none": "No service of the traffic split is available.",
  "transform.too_large": "The body is too large to transform.",
  "waf.body-not-inspected": "The body is too large or of a type that is not inspected.",
  respond: "Fixed response.",
};

/** The plugin by the prefix of its reasons. */
const plugins: Readonly<Record<string, string>> = {
  acl: "acl",
  blocklist: "blocklist",
  bot: "bot-detection",
  cache: "response-cache",
  circuit: "circuit-breaker",
  cl: "concurrency-limit",
  cors: "cors",
  crowdsec: "crowdsec",
  csrf: "csrf",
  "grpc-web": "grpc-web",
  ip: "ip-restriction",
  policy: "access-policy",
  redirect: "redirect",
  respond: "respond",
  rl: "rate-limit",
  script: "script",
  size: "request-size-limit",
  split: "traffic-split",
  transform: "transform",
  validation: "request-validation",
  waf: "waf-lite",
  "auth.basic": "basic-auth",
  "auth.forward": "forward-auth",
  "auth.hmac": "hmac-auth",
  "auth.jwt": "jwt",
  "auth.key": "key-auth",
  "auth.ldap": "ldap-auth",
  "auth.mtls": "mtls-auth",
  "auth.oidc": "oidc",
};

/** Codes come from outside: `constructor` is possible. */
const valueIn = (table: Readonly<Record<string, string>>, word: string): string | null =>
  Object.hasOwn(table, word) ? (table[word] ?? null) : null;

export function explainReason(word: string): Explained {
  const known = valueIn(own, word);
  if (known !== null) return { word, text: known, plugin: null };
  const [first = "", second = "", third = ""] = word.split(".");
  if (second === "error")
    return { word, text: "The plugin failed. See the log of the gateway.", plugin: first };
  const plugin = valueIn(plugins, `${first}.${second}`) ?? valueIn(plugins, first);
  const text = valueIn(ofPlugins, word);
  if (first === "blocklist" && second === "listed")
    return { word, text: `The client's address is in the list ${third}.`, plugin };
  if (text !== null || first !== "waf") return { word, text, plugin };
  return { word, text: `Firewall rule ${second} matched.`, plugin };
}
