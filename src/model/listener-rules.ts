// Rules about one listener that a schema cannot express; knows no other object.
import type { Listener } from "./listener.ts";
import { checkList, type ObjectRules, type Report } from "./object-rules.ts";
import type { FieldChecks } from "./object-rules.ts";

export const listenerRules: ObjectRules<Listener> = (listener, checks, report) => {
  const problem = checks.listenAddress(listener.address);
  if (problem !== null) report("address", problem);
  for (const { path, message } of checks.hosts(listener.hosts)) report(path, message);
  if (listener.http3 && listener.protocol !== "https") report("http3", 'needs protocol "https"');
  checkList(listener.trusted_proxies, checks.proxyNetwork, {
    path: "trusted_proxies",
    report,
  });
  checkEngine(listener, report);
  checkClientAuth(listener, checks, report);
  if (listener.strict_sni && listener.protocol !== "https")
    report("strict_sni", 'needs protocol "https"');
  if (listener.proxy_protocol && listener.trusted_proxies.length === 0)
    report(
      "trusted_proxies",
      "is required with proxy_protocol: list the proxies whose PROXY header the gateway trusts",
    );
  const barred = socketField(listener);
  if (listener.http3 && barred !== null)
    report("http3", `cannot be combined with ${barred}, which holds for TCP connections only`);
};

function checkEngine(listener: Listener, report: Report): void {
  if (listener.engine === "sluice") return;
  const field = socketField(listener);
  if (field !== null) report(field, `needs engine "sluice": set it too, because ${REASON}`);
  if (listener.max_header_bytes > 16_384)
    report(
      "max_header_bytes",
      'must be at most 16384 with engine "bun": lower it (null is its default), or keep "sluice"',
    );
}

const REASON = "Bun.serve reads no connection before its first request";

/** Restrictions of TCP connections, which clients would bypass over UDP and which Bun.serve does not know. */
const frontFields = [
  "client_auth",
  "strict_sni",
  "proxy_protocol",
  "max_connections",
  "max_connections_per_address",
] as const;

const isAsked = (value: Listener[(typeof frontFields)[number]]) =>
  value !== false && value !== 0 && value !== "none";

/** The setting that needs sockets of ours; null: Bun.serve can do with all of them. */
export const socketField = (listener: Pick<Listener, (typeof frontFields)[number]>) =>
  frontFields.find((field) => isAsked(listener[field])) ?? null;

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
}
