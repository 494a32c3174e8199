// Rules about one listener that a schema cannot express; knows no other object.
import type { Listener } from "./listener.ts";
import { checkList, type FieldChecks, type ObjectRules, type Report } from "./object-rules.ts";

export const listenerRules: ObjectRules<Listener> = (listener, checks, report) => {
  const problem = checks.listenAddress(listener.address);
  if (problem !== null) report("address", problem);
  for (const { path, message } of checks.hosts(listener.hosts)) report(path, message);
  if (listener.http3 && listener.protocol !== "https") report("http3", 'needs protocol "https"');
  checkList(listener.trusted_proxies, checks.cidr, { path: "trusted_proxies", report });
  checkEngine(listener, report);
  checkClientAuth(listener, checks, report);
  if (listener.strict_sni && listener.protocol !== "https")
    report("strict_sni", 'needs protocol "https"');
  if (listener.proxy_protocol && listener.trusted_proxies.length === 0)
    report(
      "trusted_proxies",
      "is required with proxy_protocol: list the proxies whose PROXY header the gateway trusts",
    );
  const barred = frontFields.find((field) => isAsked(listener[field]));
  if (listener.http3 && barred !== undefined)
    report("http3", `cannot be combined with ${barred}, which holds for TCP connections only`);
};

/** HTTP/3 is Bun's. */
function checkEngine(listener: Listener, report: Report): void {
  const { engine, shared_engines: isShared, protocol, http3 } = listener;
  if (engine === "full" && isShared)
    report(
      "shared_engines",
      'has no effect with engine "full", which serves all host names: choose one of the two',
    );
  if (isShared && protocol !== "https")
    report(
      "shared_engines",
      'needs protocol "https", because the name in the TLS handshake chooses the engine: without TLS, use engine "full"',
    );
  if (engine === "sluice" && isShared)
    report("shared_engines", 'has no effect with engine "sluice": turn it off');
  if (engine !== "sluice" && listener.max_header_bytes > 16_384)
    report(
      "max_header_bytes",
      `must be at most 16384 with engine "${engine}": lower it, or keep engine "sluice"`,
    );
  if (http3 && (engine === "full" || isShared))
    report(
      "http3",
      `cannot be combined with ${isShared ? "shared_engines" : 'engine "full"'}: turn HTTP/3 off, or use another port for the names that need this engine`,
    );
}

/** Restrictions of TCP connections, which clients would bypass over UDP. */
const frontFields = [
  "client_auth",
  "strict_sni",
  "proxy_protocol",
  "max_connections",
  "max_connections_per_address",
] as const;

const isAsked = (value: Listener[(typeof frontFields)[number]]) =>
  value !== false && value !== 0 && value !== "none";

function checkClientAuth(listener: Listener, checks: FieldChecks, report: Report): void {
  const { client_auth: mode, client_ca: authorities, client_crl: revoked } = listener;
  const wrongAuthorities = authorities === null ? null : checks.authorities(authorities);
  if (wrongAuthorities !== null) report("client_ca", wrongAuthorities);
  const wrongList = revoked === null ? null : checks.revocations(revoked);
  if (wrongList !== null) report("client_crl", wrongList);
  if (mode === "none") return;
  // Each of these would allow clients without a certificate check.
  if (listener.protocol !== "https") report("client_auth", 'needs protocol "https"');
  if (authorities === null) report("client_ca", "is required with client_auth");
  if (listener.http2 && listener.engine === "standard")
    report(
      "http2",
      'must be false with client_auth: such a listener speaks HTTP/1.1 only, unless its engine is "full"',
    );
}
