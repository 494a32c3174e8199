// Rules about a single object that a schema cannot express; knows no other object.
import type { Listener } from "../model/listener.ts";
import type { Route } from "../model/route.ts";
import type { Service } from "../model/service.ts";
import type { Settings } from "../model/settings.ts";
import { checkHealth } from "./health-rules.ts";
import { checkConnectionRules } from "./listener-rules.ts";
import type { Report } from "./problem.ts";

/** The problem of a text, worded to follow a field's name; null: none. */
export type TextCheck = (text: string) => string | null;

/** Checks that other rooms provide. */
export interface FieldChecks {
  /** A network or address. */
  readonly cidr: TextCheck;
  /** Host of a target. */
  readonly targetHost: TextCheck;
  /** The Host sent upstream, other than the two keywords. */
  readonly hostHeader: TextCheck;
  /** The name that a target's certificate must be for. */
  readonly serverName: TextCheck;
  /** PEM certificates to trust. */
  readonly authorities: TextCheck;
  /** PEM revocation lists. */
  readonly revocations: TextCheck;
  /** Host names and wildcards that a listener serves. */
  readonly hosts: (
    hosts: readonly string[],
  ) => readonly { readonly path: string; readonly message: string }[];
  /** An address to listen on. */
  readonly listenAddress: TextCheck;
  /** Hosts, paths and conditions of a route, including its regular expressions. */
  readonly route: (route: Route) => readonly { readonly path: string; readonly message: string }[];
}

function checkList(
  list: readonly string[],
  check: TextCheck,
  report: (at: number, problem: string) => void,
) {
  for (const [index, text] of list.entries()) {
    const problem = check(text);
    if (problem !== null) report(index, problem);
  }
}

export function checkService(service: Service, checks: FieldChecks, report: Report): void {
  const { host_header: hostHeader, hash_on: hashOn } = service;
  if (hostHeader !== "preserve" && hostHeader !== "target") {
    const problem = checks.hostHeader(hostHeader);
    if (problem !== null) report("host_header", problem);
  }
  checkHealth(service, report);
  const { server_name: serverName, ca_certificates: authorities } = service.tls;
  const wrongName = serverName === "" ? null : checks.serverName(serverName);
  if (wrongName !== null) report("tls.server_name", wrongName);
  const wrongAuthorities = authorities === "" ? null : checks.authorities(authorities);
  if (wrongAuthorities !== null) report("tls.ca_certificates", wrongAuthorities);
  const needsName = ["header", "cookie", "query"].includes(hashOn.source);
  if (service.algorithm === "consistent_hash" && needsName && hashOn.name === "")
    report("hash_on.name", `is required for the source "${hashOn.source}"`);
}

export function checkRoute(route: Route, checks: FieldChecks, report: Report): void {
  for (const { path, message } of checks.route(route)) report(path, message);
  checkList(route.client_cidrs, checks.cidr, (at, problem) =>
    report(`client_cidrs[${at}]`, problem),
  );
  checkList(route.maintenance?.bypass_cidrs ?? [], checks.cidr, (at, problem) =>
    report(`maintenance.bypass_cidrs[${at}]`, problem),
  );
}

export function checkListener(listener: Listener, checks: FieldChecks, report: Report): void {
  const problem = checks.listenAddress(listener.address);
  if (problem !== null) report("address", problem);
  for (const { path, message } of checks.hosts(listener.hosts)) report(path, message);
  if (listener.http3 && listener.protocol !== "https") report("http3", 'needs protocol "https"');
  checkList(listener.trusted_proxies, checks.cidr, (at, wrong) =>
    report(`trusted_proxies[${at}]`, wrong),
  );
  checkConnectionRules(listener, checks, report);
}

export function checkSettings(settings: Settings, checks: FieldChecks, report: Report): void {
  checkList(settings.trusted_proxies, checks.cidr, (at, problem) =>
    report(`trusted_proxies[${at}]`, problem),
  );
  checkList(settings.admin_allowed_cidrs, checks.cidr, (at, problem) =>
    report(`admin_allowed_cidrs[${at}]`, problem),
  );
  if (settings.default_site.action === "redirect" && settings.default_site.to === "")
    report("default_site.to", 'is required for the action "redirect"');
}
