// Rules between objects: references exist, unique fields are unique, sockets do not clash; checks what changed.
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Identity } from "../model/fields.ts";
import { findBy, LayeredMap } from "../model/layered-map.ts";
import type { Steps } from "../pace.ts";
import type { Alert } from "../model/alert.ts";
import type { AcmeAccount } from "../model/acme-account.ts";
import type { Application } from "../model/application.ts";
import type { DnsProvider } from "../model/dns-provider.ts";
import type { Consumer } from "../model/consumer.ts";
import type { Credential } from "../model/credential.ts";
import type { Listener } from "../model/listener.ts";
import type { Plugin } from "../model/plugin.ts";
import type { Route } from "../model/route.ts";
import type { Service } from "../model/service.ts";
import { isHttpProtocol } from "./upstream-protocol.ts";
import type { Target } from "../model/target.ts";
import type { Certificate } from "../model/certificate.ts";
import type { StreamRoute } from "../model/stream-route.ts";
import type { Secret } from "../model/secret.ts";
import type { Token } from "../model/token.ts";
import type { User } from "../model/user.ts";
import { checkAccess } from "./access-rules.ts";
import { checkAlerts } from "./alert-rules.ts";
import { checkApplications } from "./application-rules.ts";
import { type ListenAddress, overlaps } from "./address-overlap.ts";
import { diffLarge, diffMaps } from "./diff.ts";
import { checkEngines } from "./engine-rules.ts";
import {
  checkListener,
  checkName,
  checkRoute,
  checkService,
  checkSettings,
  type FieldChecks,
} from "./field-rules.ts";
import type { PluginCatalogue } from "./plugin-config.ts";
import { checkPlugins } from "./plugin-rules.ts";
import { type Problem, ProblemList } from "./problem.ts";
import { checkStreamRoutes } from "./stream-rules.ts";
import type { CollectionChange, LargeChange } from "./snapshot.ts";
import { checkSharing } from "./shared-listeners.ts";
import { checkTargets } from "./target-rules.ts";

/** The difference of two configurations, by identity. */
export interface ConfigDifference {
  readonly services: CollectionChange<Service>;
  readonly targets: CollectionChange<Target>;
  readonly routes: CollectionChange<Route>;
  readonly listeners: CollectionChange<Listener>;
  readonly certificates: CollectionChange<Certificate>;
  readonly stream_routes: CollectionChange<StreamRoute>;
  readonly acme_accounts: CollectionChange<AcmeAccount>;
  readonly dns_providers: CollectionChange<DnsProvider>;
  readonly applications: CollectionChange<Application>;
  readonly consumers: LargeChange<Consumer>;
  readonly credentials: LargeChange<Credential>;
  readonly plugins: CollectionChange<Plugin>;
  readonly alerts: CollectionChange<Alert>;
  readonly users: CollectionChange<User>;
  readonly tokens: CollectionChange<Token>;
  readonly secrets: CollectionChange<Secret>;
  readonly settings: boolean;
  readonly sso: boolean;
}

export function differenceOf(before: GatewayConfig | null, after: GatewayConfig): ConfigDifference {
  return {
    services: diffMaps(before?.services, after.services),
    targets: diffMaps(before?.targets, after.targets),
    routes: diffMaps(before?.routes, after.routes),
    listeners: diffMaps(before?.listeners, after.listeners),
    stream_routes: diffMaps(before?.stream_routes, after.stream_routes),
    certificates: diffMaps(before?.certificates, after.certificates),
    acme_accounts: diffMaps(before?.acme_accounts, after.acme_accounts),
    dns_providers: diffMaps(before?.dns_providers, after.dns_providers),
    applications: diffMaps(before?.applications, after.applications),
    consumers: diffLarge(before?.consumers, after.consumers),
    credentials: diffLarge(before?.credentials, after.credentials),
    plugins: diffMaps(before?.plugins, after.plugins),
    alerts: diffMaps(before?.alerts, after.alerts),
    users: diffMaps(before?.users, after.users),
    tokens: diffMaps(before?.tokens, after.tokens),
    secrets: diffMaps(before?.secrets, after.secrets),
    settings: before?.settings !== after.settings,
    sso: before?.sso !== after.sso,
  };
}

/** A candidate, the previous configuration and the difference. */
export interface Candidate {
  readonly config: GatewayConfig;
  readonly previous: GatewayConfig | null;
  readonly difference: ConfigDifference;
}

export interface RuleContext {
  readonly checks: FieldChecks;
  readonly managementAddresses: readonly ListenAddress[];
  readonly plugins: PluginCatalogue;
  readonly openSealed: (sealed: string) => string;
}

/** All problems of the changed objects; empty when the candidate is valid. */
export function* checkSteps(candidate: Candidate, context: RuleContext): Steps<readonly Problem[]> {
  const list = new ProblemList();
  yield* checkServices(candidate, context, list);
  yield* checkTargets(candidate, context, list);
  yield* checkRoutes(candidate, context, list);
  checkListeners(candidate, context, list);
  checkCertificates(candidate, list);
  checkStreamRoutes(candidate, context, list);
  for (const name of ["acme_accounts", "dns_providers", "applications", "alerts"] as const)
    checkNames(name, candidate, list);
  checkApplications(candidate, list);
  checkAlerts(candidate, list);
  yield* checkPlugins(candidate, context, list);
  yield* checkEngines(candidate, list);
  checkAccess(candidate, context, list);
  if (candidate.difference.settings)
    checkSettings(candidate.config.settings, context.checks, list.of("settings"));
  return list.problems;
}

function* checkServices(
  candidate: Candidate,
  { checks }: RuleContext,
  list: ProblemList,
): Steps<void> {
  const { config, previous, difference } = candidate;
  const { upserts, removals } = difference.services;
  for (const service of upserts) {
    const report = list.of("services", service.id);
    checkService(service, checks, report);
    const { client_certificate_id: certificate } = service.tls;
    if (certificate !== null && !config.certificates.has(certificate))
      report("tls.client_certificate_id", "certificate does not exist");
    yield;
  }
  checkNames("services", candidate, list);
  if (removals.length === 0 && !upserts.some(isStream)) return;
  // Unchanged objects may refer to a service that was deleted or no longer speaks HTTP.
  const gone = new Set(previous === null ? [] : removals);
  const streams = new Set(upserts.filter(isStream).map(({ id }) => id));
  for (const target of config.targets.values())
    if (gone.has(target.service_id))
      list.of("targets", target.id)("service_id", "service does not exist");
  for (const route of config.routes.values()) {
    if (route.service_id === null) continue;
    const report = list.of("routes", route.id);
    if (gone.has(route.service_id)) report("service_id", "service does not exist");
    else if (streams.has(route.service_id)) checkRouteService(route, config, report);
    yield;
  }
}

function* checkRoutes(
  candidate: Candidate,
  { checks }: RuleContext,
  list: ProblemList,
): Steps<void> {
  const { config, difference } = candidate;
  for (const route of difference.routes.upserts) {
    const report = list.of("routes", route.id);
    checkRoute(route, checks, report);
    checkRouteService(route, config, report);
    for (const [index, id] of route.listener_ids.entries())
      if (!config.listeners.has(id)) report(`listener_ids[${index}]`, "listener does not exist");
    yield;
  }
  checkNames("routes", candidate, list);
}

/** A route's service must exist and speak HTTP. */
function checkRouteService(
  route: Route,
  config: GatewayConfig,
  report: (path: string, message: string) => void,
): void {
  if (route.service_id === null) return;
  const service = config.services.get(route.service_id);
  if (service === undefined) return report("service_id", "service does not exist");
  if (isStream(service))
    report(
      "service_id",
      `service "${service.name}" has the protocol ${service.protocol}, which an HTTP route cannot use`,
    );
}

const isStream = ({ protocol }: Service) => !isHttpProtocol(protocol);

function checkListeners(candidate: Candidate, context: RuleContext, list: ProblemList): void {
  const { config, difference } = candidate;
  const gone = new Set(difference.listeners.removals);
  if (gone.size > 0) {
    for (const route of config.routes.values())
      for (const [index, id] of route.listener_ids.entries())
        if (gone.has(id))
          list.of("routes", route.id)(`listener_ids[${index}]`, "listener does not exist");
  }
  if (difference.listeners.upserts.length === 0) return;
  checkNames("listeners", candidate, list);
  const enabled = [...config.listeners.values()].filter((listener) => listener.enabled);
  for (const listener of difference.listeners.upserts) {
    const report = list.of("listeners", listener.id);
    checkListener(listener, context.checks, report);
    if (!listener.enabled) continue;
    for (const other of enabled) if (other !== listener) checkSharing(listener, other, report);
    const where = `${listener.address} port ${listener.port}`;
    if (context.managementAddresses.some((bound) => overlaps(bound, listener)))
      report("port", `${where} belongs to the management API`, 409);
  }
}

function checkCertificates(candidate: Candidate, list: ProblemList): void {
  const { config, difference } = candidate;
  for (const certificate of difference.certificates.upserts)
    checkName(certificate, list.of("certificates", certificate.id));
  checkNames("certificates", candidate, list);
  const { acme_accounts: accounts, dns_providers: providers } = difference;
  const isAnyGone = accounts.removals.length + providers.removals.length > 0;
  const checked = isAnyGone ? config.certificates.values() : difference.certificates.upserts;
  for (const certificate of checked) checkIssuing(certificate, config, list);
}

function checkIssuing(certificate: Certificate, config: GatewayConfig, list: ProblemList): void {
  const report = list.of("certificates", certificate.id);
  for (const [index, id] of certificate.acme_account_ids.entries())
    if (!config.acme_accounts.has(id))
      report(`acme_account_ids[${index}]`, "ACME account does not exist");
  const { dns_provider_id: provider, challenge, domains } = certificate;
  if (provider !== null && !config.dns_providers.has(provider))
    report("dns_provider_id", "DNS provider does not exist");
  if (certificate.source !== "acme") return;
  if (certificate.on_demand?.hosts.length === 0) report("on_demand.hosts", "is required");
  const wildcard = domains.findIndex((name) => name.startsWith("*."));
  if (challenge !== "dns-01" && wildcard >= 0)
    report(`domains[${wildcard}]`, 'a wildcard needs the challenge "dns-01"');
  if (domains.length === 0 && certificate.on_demand === null) report("domains", "is required");
}

/** Unique names: only new names are compared, with all others of the collection. */
function checkNames(
  collection:
    | "services"
    | "routes"
    | "listeners"
    | "certificates"
    | "acme_accounts"
    | "dns_providers"
    | "applications"
    | "alerts",
  { config, previous, difference }: Candidate,
  list: ProblemList,
): void {
  const word = wordOf(collection);
  const wanted = new Map<string, string>();
  for (const { id, name } of difference[collection].upserts)
    if (name !== null && previous?.[collection].get(id)?.name !== name) wanted.set(name, id);
  if (wanted.size === 0) return;
  const objects: ReadonlyMap<string, Named> = config[collection];
  if (objects instanceof LayeredMap) {
    for (const [name, id] of wanted)
      if (findBy<Named>(objects, uniqueName, { value: name, except: id }).length > 0)
        list.of(collection, id)("name", `${word} "${name}" exists already`, 409);
    return;
  }
  for (const { id, name } of objects.values()) {
    if (name === null) continue;
    const claimant = wanted.get(name);
    if (claimant !== undefined && claimant !== id)
      list.of(collection, claimant)("name", `${word} "${name}" exists already`, 409);
  }
}

type Named = Identity & { readonly name: string | null };

const uniqueName = ({ name }: Named): string | null => name;

/** `routes` -> `route`, `acme_accounts` -> `ACME account`. */
const wordOf = (collection: string) =>
  collection
    .slice(0, -1)
    .replace("_", " ")
    .replace(/^(?:acme|dns)\b/, (word) => word.toUpperCase());
