// What the words mean that say why a request ended as it did, and which plugin says them; draws nothing.

export interface Explained {
  /** The word of the gateway: `ip.denied`. */
  readonly word: string;
  /** For people; null: nobody has written it down, and the word must do. */
  readonly text: string | null;
  /** Name of the plugin that decided; null: the gateway itself. */
  readonly plugin: string | null;
}

/** Words of RFC 9209, as far as the gateway uses them. */
const own: Readonly<Record<string, string>> = {
  dns_error: "The name of the target could not be resolved.",
  dns_timeout: "The name of the target was not resolved in time.",
  destination_not_found: "No route takes this request.",
  destination_unavailable: "No target could take it: all are down, disabled or under maintenance.",
  connection_refused: "The target refused the connection. Does the application run there?",
  connection_terminated: "The target closed the connection without a response.",
  connection_timeout: "The target did not accept the connection in time.",
  connection_read_timeout: "The target stopped sending in the middle of its answer.",
  connection_write_timeout: "The target stopped reading the request.",
  connection_limit_reached: "Too many requests were in flight.",
  "body.too_slow": "The client sent the body of its request too slowly.",
  "overload.memory": "The gateway was short of memory.",
  "overload.descriptors": "The gateway had too many files and sockets open.",
  "aborts.connection": "The client aborted too many requests on this connection.",
  "aborts.address": "Clients at this address aborted too many requests.",
  tls_protocol_error: "The TLS handshake with the target failed.",
  tls_certificate_error: "The certificate of the target is not trusted.",
  tls_alert_received: "The target requires a client certificate.",
  http_request_error: "The request is not valid HTTP.",
  http_request_denied: "The request was refused.",
  http_response_incomplete: "The target closed the connection in the middle of the response.",
  http_response_header_section_size: "The head of the target's answer is too large.",
  http_response_timeout: "The target did not respond in time.",
  http_upgrade_failed: "The target did not switch the protocol.",
  http_protocol_error: "The target does not speak HTTP as it should.",
  proxy_internal_error: "The gateway failed. Its log says more.",
  proxy_configuration_error: "The TLS settings for the target are not valid.",
  proxy_loop_detected: "This gateway has already forwarded the request: it leads to itself.",
};

const ofPlugins: Readonly<Record<string, string>> = {
  "acl.denied": "The client is in a group that is kept out.",
  "acl.unknown": "It is not known who the client is, and the list of groups wants to know.",
  "auth.basic.missing": "No user name and password were sent.",
  "auth.basic.wrong": "User name or password is wrong.",
  "auth.basic.throttled": "Too many wrong passwords from there: it has to wait.",
  "auth.forward.denied": "The service that was asked for permission said no.",
  "auth.forward.open":
    "The service that is asked for permission could not be reached; let through.",
  "auth.forward.unavailable": "The service that is asked for permission could not be reached.",
  "auth.jwt.missing": "No token was sent.",
  "auth.jwt.scope": "The token does not allow this.",
  "auth.jwt.keys_unavailable": "The keys that tokens are checked with could not be fetched.",
  "auth.key.expired": "The API key has expired.",
  "auth.key.missing": "No API key was sent.",
  "auth.key.unknown": "Nobody has this API key.",
  "auth.mtls.missing": "The client showed no certificate.",
  "auth.oidc.none": "Nobody is signed in.",
  "auth.oidc.begin": "Sent to sign in.",
  "auth.oidc.done": "Came back signed in.",
  "bot.denied": "Its user agent is kept out.",
  "bot.missing_ua": "It says no user agent.",
  "cache.hit": "Answered from the cache.",
  "cache.only": "Only an answer from the cache was asked for, and there is none.",
  "circuit.open": "The target failed too often of late, and is left alone for a while.",
  "cl.full": "Too many requests at the same time.",
  "cl.timeout": "It waited too long for its turn.",
  "cl.gone": "The client left while it waited for its turn.",
  "cors.origin": "The web site that sent it is not allowed to.",
  "cors.preflight": "A browser asked whether another web site may send it.",
  "csrf.origin": "Another web site sent it.",
  "csrf.token": "Its token against forged requests is wrong.",
  "ip.denied": "Its network is kept out.",
  "ip.not_allowed": "Its network is not among those that are let in.",
  "rl.exceeded": "Too many requests in the time.",
  "size.body": "Its body is too large.",
  "size.headers": "Its header fields are too large.",
  "size.uri": "Its address is too long.",
  "split.none": "None of the services that share the traffic could take it.",
  "transform.too_large": "The body is too large to be changed.",
  "waf.body-not-inspected": "Its body is too large or of a kind that is not looked into.",
  respond: "Answered with a fixed text.",
};

/** Which plugin says words that begin so. */
const plugins: Readonly<Record<string, string>> = {
  ...{ acl: "acl", bot: "bot-detection", cache: "response-cache", circuit: "circuit-breaker" },
  ...{ cl: "concurrency-limit", cors: "cors", csrf: "csrf", ip: "ip-restriction" },
  ...{ policy: "access-policy", redirect: "redirect", respond: "respond", rl: "rate-limit" },
  ...{ script: "script", size: "request-size-limit", split: "traffic-split" },
  ...{ transform: "transform", validation: "request-validation", waf: "waf-lite" },
  ...{ "auth.basic": "basic-auth", "auth.forward": "forward-auth", "auth.hmac": "hmac-auth" },
  ...{ "auth.jwt": "jwt", "auth.key": "key-auth", "auth.ldap": "ldap-auth" },
  ...{ "auth.mtls": "mtls-auth", "auth.oidc": "oidc" },
};

/** Words come from outside: `constructor` is one of them as well. */
const valueIn = (table: Readonly<Record<string, string>>, word: string): string | null =>
  Object.hasOwn(table, word) ? (table[word] ?? null) : null;

export function explainReason(word: string): Explained {
  const known = valueIn(own, word);
  if (known !== null) return { word, text: known, plugin: null };
  const [first = "", second = ""] = word.split(".");
  if (second === "error")
    return { word, text: "The plugin failed. The log of the gateway says more.", plugin: first };
  const plugin = valueIn(plugins, `${first}.${second}`) ?? valueIn(plugins, first);
  const text = valueIn(ofPlugins, word);
  if (text !== null || first !== "waf") return { word, text, plugin };
  return { word, text: `Rule ${second} of the firewall found something.`, plugin };
}
