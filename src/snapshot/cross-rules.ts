// Rules between objects: protocols fit, sockets do not clash; checks what changed.
import type { Candidate, RuleContext, ConfigDifference } from "./candidate.ts";
import { checkDestinations } from "./destination-rules.ts";
import { checkPermitted } from "./permitted-rules.ts";
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  type GatewayConfig,
  largeFactsOf,
  mapCollections,
} from "../model/gateway-config.ts";
import { checkList, type Report } from "../model/object-rules.ts";
import type { FieldChecks } from "../model/object-rules.ts";
import type { Route } from "../model/route.ts";
import type { Service } from "../model/service.ts";
import type { Settings } from "../model/settings.ts";
import type { Steps } from "../pace.ts";
import { checkAccess } from "./access-rules.ts";
import { overlaps } from "./address-overlap.ts";
import { checkApplications } from "./application-rules.ts";
import { checkCollections } from "./collection-rules.ts";
import { diffLarge, diffMaps } from "./diff.ts";
import { checkEngines } from "./engine-rules.ts";
import { checkPlugins } from "./plugin-rules.ts";
import { type Problem, ProblemList } from "./problem.ts";
import { checkRawRoutes } from "./raw-path-rules.ts";
import { checkSharing } from "./shared-listeners.ts";
import { checkStreamRoutes } from "./stream-rules.ts";
import { checkTargets } from "./target-rules.ts";
import { isHttpProtocol } from "./upstream-protocol.ts";

export function differenceOf(before: GatewayConfig | null, after: GatewayConfig): ConfigDifference {
  const collections = mapCollections((name) => {
    const old: ReadonlyMap<string, Identity> | undefined = before?.[name];
    const now: ReadonlyMap<string, Identity> = after[name];
    return largeFactsOf(name) === null ? diffMaps(old, now) : diffLarge(old, now);
  });
  return {
    ...(collections as unknown as Pick<ConfigDifference, CollectionName>),
    settings: before?.settings !== after.settings,
    sso: before?.sso !== after.sso,
  };
}

/** All problems of the changed objects; empty when the candidate is valid. */
export function* checkSteps(candidate: Candidate, context: RuleContext): Steps<readonly Problem[]> {
  const list = new ProblemList();
  yield* checkCollections(candidate, context.checks, list);
  yield* checkServices(candidate, list);
  yield* checkTargets(candidate, context, list);
  yield* checkRoutes(candidate, list);
  checkListeners(candidate, context, list);
  checkStreamRoutes(candidate, context, list);
  checkApplications(candidate, list);
  yield* checkPlugins(candidate, context, list);
  yield* checkEngines(candidate, list);
  yield* checkRawRoutes(candidate, context.plugins, list);
  checkAccess(candidate, context, list);
  checkDestinations(candidate, context, list);
  yield* checkPermitted(candidate, context, list);
  if (candidate.difference.settings)
    checkSettings(candidate.config.settings, context.checks, list.of("settings"));
  // Requests fail with the first one: what is wrong in itself comes before what conflicts with other objects.
  return list.problems.sort((a, b) => (a.status ?? 400) - (b.status ?? 400));
}

function* checkServices({ config, difference }: Candidate, list: ProblemList): Steps<void> {
  const { upserts } = difference.services;
  // Unchanged routes may refer to a service that no longer speaks HTTP.
  const streams = new Set(upserts.filter(isStream).map(({ id }) => id));
  if (streams.size === 0) return;
  for (const route of config.routes.values()) {
    if (route.service_id !== null && streams.has(route.service_id))
      checkRouteService(route, config, list.of("routes", route.id));
    yield;
  }
}

function* checkRoutes({ config, difference }: Candidate, list: ProblemList): Steps<void> {
  for (const route of difference.routes.upserts) {
    checkRouteService(route, config, list.of("routes", route.id));
    yield;
  }
}

/** A route's service must speak HTTP. */
function checkRouteService(
  route: Route,
  config: GatewayConfig,
  report: (path: string, message: string) => void,
): void {
  const service = config.services.get(route.service_id ?? "");
  if (service !== undefined && isStream(service))
    report(
      "service_id",
      `service "${service.name}" has the protocol ${service.protocol}, which an HTTP route cannot use`,
    );
}

const isStream = ({ protocol }: Service) => !isHttpProtocol(protocol);

function checkListeners(candidate: Candidate, context: RuleContext, list: ProblemList): void {
  const { config, difference } = candidate;
  if (difference.listeners.upserts.length === 0) return;
  const enabled = [...config.listeners.values()].filter((listener) => listener.enabled);
  for (const listener of difference.listeners.upserts) {
    const report = list.of("listeners", listener.id);
    if (!listener.enabled) continue;
    for (const other of enabled) if (other !== listener) checkSharing(listener, other, report);
    const where = `${listener.address} port ${listener.port}`;
    if (context.managementAddresses.some((bound) => overlaps(bound, listener)))
      report("port", `${where} belongs to the management API`, 409);
  }
}

function checkSettings(settings: Settings, checks: FieldChecks, report: Report): void {
  checkList(settings.trusted_proxies, checks.proxyNetwork, {
    path: "trusted_proxies",
    report,
  });
  checkList(settings.cloudflare.networks, checks.cidr, { path: "cloudflare.networks", report });
  const { permitted_networks: networks } = settings.local_ca;
  checkList(networks, checks.cidr, { path: "local_ca.permitted_networks", report });
  const { permitted_destinations: permitted } = settings;
  checkList(permitted, checks.cidr, { path: "permitted_destinations", report });
  checkList(settings.admin_allowed_cidrs, checks.cidr, { path: "admin_allowed_cidrs", report });
  if (settings.default_site.action === "redirect" && settings.default_site.to === "")
    report("default_site.to", 'is required for the action "redirect"');
}
