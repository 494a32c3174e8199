// Composes the control plane: the use cases around the one path of change; knows no HTTP and no storage.
import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";
import type { Certificate } from "./model/certificate.ts";
import type { SecretBox } from "./crypto/secret-box.ts";
import { ManagementCookies } from "./http/management-cookies.ts";
import type { AlertType } from "./model/alert.ts";
import type { AuditStore } from "./model/audit-entry.ts";
import type { DnsProviderType } from "./model/dns-provider.ts";
import type { RollupStore } from "./model/rollup.ts";
import type { WorkerLifecycleEvent } from "./supervisor/worker-slot.ts";
import type { TargetBoard } from "./shared-memory/target-board.ts";
import type { ListenAddress } from "./net/destinations.ts";
import type { Compiled } from "./snapshot/compile-context.ts";
import type { PluginCatalogue } from "./snapshot/plugin-config.ts";
import { RegexChecker } from "./snapshot/regex-thread.ts";
import { type AdminAccess, AdminNetworks, localAccess } from "./control/admin-network.ts";
import { Account } from "./auth/account.ts";
import { SecondFactors, type TotpStore } from "./auth/totp.ts";
import { Users } from "./auth/users.ts";
import { Auth, type AuthOptions } from "./auth/auth.ts";
import { createThrottle, type LoginFailureStore } from "./auth/throttle.ts";
import { Alerts } from "./observe/alerts/alerts.ts";
import { AlertEngine, type AlertEngineOptions } from "./observe/alerts/engine.ts";
import { Applications } from "./applications/applications.ts";
import { ApplicationReconciler } from "./applications/application-reconciler.ts";
import { ObservedRollout, type Rollout, type RolloutStatus } from "./snapshot/rollout.ts";
import { AuditLog } from "./control/audit.ts";
import { type SessionStore, Sessions } from "./auth/sessions.ts";
import { SingleSignOn } from "./auth/sso/single-sign-on.ts";
import { CachePurge, type PurgeCaches } from "./control/cache-purge.ts";
import { Changes } from "./control/change.ts";
import type { ChangesOptions, ChangeStore } from "./control/change-contract.ts";
import { configEventsOf } from "./control/config-event.ts";
import { EventHub, type EventPayloads } from "./control/events.ts";
import { CutOff } from "./control/cut-off.ts";
import { createFleetParts, type FleetOptions, type FleetParts } from "./control/fleet-parts.ts";
import { type FleetDuty, soleDuty } from "./control/fleet-view.ts";
import { Certificates } from "./acme/certificates.ts";
import { Credentials } from "./control/credentials.ts";
import { CredentialUse } from "./control/credential-use.ts";
import { type DiscoveryOptions, DiscoverySources } from "./discovery/discovery.ts";
import { dnsProviders } from "./acme/dns/index.ts";
import { sinks } from "./observe/alerts/sinks.ts";
import { createDnsAccess, type DnsAccess } from "./acme/dns/access.ts";
import { DnsProviders } from "./acme/dns-providers.ts";
import { TargetBoardRows } from "./control/health/target-board-rows.ts";
import { TargetStates } from "./control/health/target-states.ts";
import { createHealth, type HealthUseCases } from "./control/health/create-health.ts";
import type { OverrideStore } from "./control/health/overrides.ts";
import { type AcmeAccounts, createAcmeAccounts } from "./acme/accounts.ts";
import { Acme, type AcmeParts } from "./acme/create-acme.ts";
import { identitiesOf } from "./acme/caa.ts";
import type { LocalCaStore } from "./acme/local-ca.ts";
import { Preflight } from "./applications/preflight.ts";
import type { UseStore } from "./control/last-use.ts";
import { listenerEventsOf } from "./control/listener-event.ts";
import { Plugins, type PluginsOptions } from "./control/plugins.ts";
import { type AskWorker, RouteExplainer } from "./control/route-explainer.ts";
import { Pressure } from "./control/pressure.ts";
import { createResources } from "./control/resource.ts";
import { createSecrets } from "./control/secrets.ts";
import { createServices } from "./control/services.ts";
import { SettingsUseCases } from "./control/settings.ts";
import { type Observation, ObservationBase, type ObservedWorkers } from "./observe/observation.ts";
import type { SharedRollups } from "./observe/stats/shared-rollups.ts";
import { type AskWorkers, Connections } from "./control/connections.ts";
import { Targets } from "./control/targets.ts";
import { Revisions, type RevisionStore } from "./import/transfer/revisions.ts";
import { Transfer } from "./import/transfer/transfer.ts";

/** How alerts and DNS providers are configured, by their types. */
export const configs: ChangesOptions["configs"] = {
  alerts: (type) => sinks[type as AlertType].config,
  dns_providers: (type) => dnsProviders[type as DnsProviderType].config,
};

export interface ControlPlaneOptions extends FleetOptions, Pick<PluginsOptions, "pluginDirectory"> {
  /** Id of the data directory; part of the names of cookies. */
  readonly instanceId: string;
  readonly store: ChangeStore;
  /** The work that only one node does; absent: this one does it. */
  readonly duty?: FleetDuty;
  readonly auditStore: AuditStore;
  readonly sessionStore: SessionStore;
  readonly totpStore: TotpStore;
  readonly tokenStore: AuthOptions["tokenStore"];
  readonly credentialUseStore: UseStore;
  /** Failed sign-ins, which count after a restart. Default: a restart forgets them. */
  readonly loginFailureStore?: LoginFailureStore;
  /** Overrides of target health; a fleet needs it. */
  readonly overrideStore?: OverrideStore;
  /** The root of the local CA. Default: none at the start. */
  readonly localCaStore?: LocalCaStore;
  readonly claimStore?: DiscoveryOptions["claimStore"];
  /** All plugins. */
  readonly plugins: PluginCatalogue;
  readonly revisionStore: RevisionStore;
  /** Seals secrets that must be decrypted later. */
  readonly box: SecretBox;
  readonly rollout: Rollout;
  /** Health and load of targets, shared with the workers. */
  readonly targetBoard: TargetBoard;
  readonly clock: Clock;
  readonly log: Log;
  /** The configuration at the start, from `compileStored`. */
  readonly current: Compiled;
  /** Called for each change: the address of the management API may be known later than the first version. */
  readonly context: ChangesOptions["context"];
  /** Absent when no workers run. */
  readonly askWorkers?: AskWorkers;
  readonly askWorker?: AskWorker;
  readonly purgeCaches?: PurgeCaches;
  /** Store for the history of the statistics. Default: none. */
  readonly rollupStore?: RollupStore;
  /** Statistics in the database of the fleet. */
  readonly sharedRollups?: SharedRollups;
  /** Entry file of the thread that reads large configuration files. Default: this thread reads them. */
  readonly importerUrl?: URL;
  /** Entry file of the thread that checks regular expressions. Default: this thread checks them. */
  readonly regexCheckerUrl?: URL;
  /** Name servers, `address` or `address:port`; empty: the system's. Default: those. */
  readonly dnsServers?: readonly string[];
  /** Programs that DNS providers may run. Default: none. */
  readonly dnsPrograms?: readonly string[];
  /** Stores the state of ACME orders and serves challenge responses; absent: no ACME. */
  readonly acme?: AcmeParts;
  /** Configuration files that each own what they name. Default: none. */
  readonly configFiles?: DiscoveryOptions["files"];
  /** Access to the management API. Default: from this machine only. */
  readonly adminAccess?: AdminAccess;
  /** Counters and request rings of workers. Default: none. */
  readonly observed?: ObservedWorkers;
  /** What this start has changed, in sentences. Default: nothing. */
  readonly notices?: readonly string[];
}

export interface ControlPlane extends FleetParts {
  readonly changes: Changes;
  readonly notices: readonly string[];
  readonly adminNetworks: AdminNetworks;
  readonly audit: AuditLog;
  readonly events: EventHub;
  readonly sessions: Sessions;
  readonly sso: SingleSignOn;
  /** The use cases of every collection. */
  readonly resources: ReturnType<typeof createResources<ReturnType<typeof createOwnResources>>>;
  readonly targets: Targets;
  readonly health: HealthUseCases;
  readonly explain: RouteExplainer;
  readonly applications: Applications;
  readonly certificates: Certificates;
  readonly acme: Acme;
  readonly discovery: DiscoverySources;
  readonly preflight: Preflight;
  readonly dnsAccess: DnsAccess;
  readonly dnsProviders: DnsProviders;
  readonly acmeAccounts: AcmeAccounts;
  readonly connections: Connections;
  readonly alerts: Alerts;
  readonly alertEngine: AlertEngine;
  readonly credentials: Credentials;
  readonly credentialUse: CredentialUse;
  readonly plugins: Plugins;
  readonly cachePurge: CachePurge;
  readonly users: Users;
  readonly secondFactors: SecondFactors;
  readonly account: Account;
  readonly auth: Auth;
  readonly settings: SettingsUseCases;
  readonly observation: Observation;
  readonly transfer: Transfer;
  readonly revisions: Revisions;
  readonly pressure: Pressure;
  /** Addresses of the management API. */
  managementAddresses(): readonly ListenAddress[];
  rolloutStatus(): RolloutStatus;
  readonly cutOff: CutOff;
  /** Publishes a worker event. */
  onWorkerEvent(event: WorkerLifecycleEvent): void;
  /** Writes buffered state and removes expired state; called about once a minute, and at the end with `isLast`. */
  runMaintenance(isLast?: boolean): void;
}

export function createControlPlane(options: ControlPlaneOptions): ControlPlane {
  const { targetBoard, clock, current } = options;
  const observation = new ObservationBase({ ...options, served: current.snapshot });
  const rows = new TargetBoardRows(targetBoard, current.snapshot);
  const observers = [rows, ...observation.observers];
  const rollout = new ObservedRollout(options.rollout, observers, current.snapshot);
  const states = new TargetStates(targetBoard, clock);
  const regexes = new RegexChecker({ url: options.regexCheckerUrl ?? null });
  const changes = new Changes({ ...options, configs, rollout, regexes });
  const adminNetworks = createAdminNetworks(options, changes);
  const audit = new AuditLog({ ...options, store: options.auditStore, changes });
  const events = createEvents(options, { changes, audit });
  const access = createAccess(options, { changes, audit });
  const consumption = createConsumption(options, changes);
  const dnsAccess = createDnsAccess(options, changes);
  const acme = new Acme({ ...options, changes, audit, events, dns: dnsAccess.parts });
  const publication = createPublication(options, { changes, states, acme });
  const { traffic } = observation;
  const alerting = createAlerts(options, { changes, audit, events, traffic });
  const parts = { ...consumption, ...access, ...publication, ...alerting, changes, states };
  const own = createOwnResources(options, { ...parts, dnsAccess });
  return {
    resources: createResources(changes, own),
    changes,
    notices: options.notices ?? [],
    adminNetworks,
    audit,
    events,
    health: createHealth({ ...options, rows, states, changes, audit, events }),
    targets: own.targets,
    explain: new RouteExplainer(changes, states, options.askWorker ?? noReply),
    cachePurge: new CachePurge({
      ...options,
      changes,
      audit,
      purgeCaches: options.purgeCaches ?? (() => Promise.resolve(0)),
    }),
    connections: new Connections({ changes, audit }, options.askWorkers ?? noReplies),
    certificates: publication.certificates,
    applications: publication.applications,
    acme,
    discovery: createDiscovery(options, { changes, regexes, ...publication }),
    preflight: createPreflight(options, { changes, dnsAccess, acme }),
    acmeAccounts: own.acme_accounts,
    dnsAccess,
    dnsProviders: own.dns_providers,
    ...consumption,
    ...access,
    revisions: new Revisions(changes, options.revisionStore),
    settings: new SettingsUseCases(changes, adminNetworks),
    observation: observation.complete({ changes, states, targetBoard, acme: acme.engine }),
    ...alerting,
    pressure: new Pressure(events, () => clock.now()),
    managementAddresses: () => options.context().managementAddresses,
    rolloutStatus: () => options.rollout.status(),
    ...createFleetParts(options, { ...access, ...consumption, changes, audit }),
    onWorkerEvent: (event) => publishWithReason(events, "worker", { clock, event }),
    runMaintenance(isLast = false) {
      access.auth.runMaintenance(isLast);
      consumption.credentialUse.flush(isLast);
      publication.reconciler.wake();
    },
  };
}

/** The collections whose use cases do more than their definitions say. */
function createOwnResources(
  { box }: ControlPlaneOptions,
  parts: {
    readonly changes: Changes;
    readonly states: TargetStates;
    readonly dnsAccess: DnsAccess;
    readonly auth: Auth;
    readonly users: Users;
    readonly certificates: Certificates;
    readonly applications: Applications;
    readonly credentials: Credentials;
    readonly plugins: Plugins;
    readonly alerts: Alerts;
  },
) {
  const { changes, states, dnsAccess, auth, ...others } = parts;
  return {
    ...others,
    services: createServices(changes, states),
    targets: new Targets(changes, states),
    acme_accounts: createAcmeAccounts(changes, box),
    dns_providers: new DnsProviders({ ...dnsAccess, box, changes }),
    tokens: auth.tokens,
    secrets: createSecrets(changes, box),
  };
}

const noReply = () => Promise.resolve(null);
const noReplies = () => Promise.resolve([]);

function createAdminNetworks(
  { adminAccess = localAccess, log }: ControlPlaneOptions,
  changes: Changes,
): AdminNetworks {
  const networks = new AdminNetworks(adminAccess, () => changes.config.settings);
  changes.guardBy(networks);
  changes.onServed(({ before, after }) => {
    const isChanged = before.settings.admin_allowed_cidrs !== after.settings.admin_allowed_cidrs;
    if (isChanged) for (const warning of networks.warnings()) log.warn(warning);
  });
  return networks;
}

const createDiscovery = (
  options: ControlPlaneOptions,
  parts: Pick<DiscoveryOptions, "changes" | "applications" | "regexes">,
): DiscoverySources =>
  new DiscoverySources({
    ...options,
    ...parts,
    node: options.fleet?.name ?? null,
    files: options.configFiles ?? null,
  });

function createPreflight(
  { acme: parts }: ControlPlaneOptions,
  { changes, dnsAccess, acme }: Pick<ControlPlane, "changes" | "dnsAccess" | "acme">,
): Preflight {
  return new Preflight({
    lookup: dnsAccess.lookup,
    dns: dnsAccess.parts,
    dialer: changes.dialer,
    identitiesOf: (account) => identitiesOf(account, changes.dialer.fetch),
    config: () => changes.config,
    show: parts === undefined ? null : (proof) => acme.engine.showProof(proof),
  });
}

/** Certificates, and applications, which request some. */
function createPublication(
  options: ControlPlaneOptions,
  { acme, ...own }: Pick<ControlPlane, "acme" | "changes"> & { readonly states: TargetStates },
) {
  const { duty = soleDuty } = options;
  const parts = { ...options, ...own, duty, localCa: acme.localCa };
  const progressOf = (certificate: Certificate) => acme.engine.progressOf(certificate);
  const certificates = new Certificates({ ...parts, progressOf });
  const certificateView = (certificate: Certificate) => certificates.view(certificate);
  const applications = new Applications({ ...parts, certificateView });
  const reconciler = new ApplicationReconciler(parts);
  duty.onChange(() => reconciler.wake());
  return { certificates, applications, reconciler };
}

function createAlerts(
  options: ControlPlaneOptions,
  parts: Pick<AlertEngineOptions, "changes" | "events" | "traffic"> & { readonly audit: AuditLog },
) {
  const engine = new AlertEngine({ ...options, ...parts });
  const alerts = new Alerts({ ...options, ...parts, engine });
  return { alerts, alertEngine: engine };
}

/** Credentials and plugins. */
function createConsumption(options: ControlPlaneOptions, changes: Changes) {
  const use = new CredentialUse({ ...options, store: options.credentialUseStore, changes });
  return {
    credentials: new Credentials({ ...options, changes, use }),
    credentialUse: use,
    plugins: new Plugins({ ...options, changes }),
  };
}

function createAccess(
  options: ControlPlaneOptions,
  { changes, audit }: { readonly changes: Changes; readonly audit: AuditLog },
) {
  const { totpStore: store, box, clock } = options;
  const sessions = new Sessions({ ...options, changes, store: options.sessionStore });
  const cookies = new ManagementCookies(options.instanceId, (value) => sessions.isLive(value));
  const parts = { changes, audit, sessions, cookies };
  const secondFactors = new SecondFactors({ ...parts, store, box });
  const users = new Users(changes, secondFactors);
  const { fleet = null } = options;
  const cutOff = new CutOff({ fleet, settings: () => changes.config.settings.fleet });
  const throttle = createThrottle(options);
  const account = new Account({ ...parts, users, secondFactors, attempts: throttle, clock });
  const auth = new Auth({ ...options, ...parts, secondFactors, throttle, cutOff });
  const transfer = new Transfer({ ...options, ...parts, adminToken: auth.adminToken });
  const sso = new SingleSignOn({ ...options, ...parts });
  return { users, sessions, secondFactors, account, auth, sso, transfer, cutOff, throttle };
}

function createEvents(
  { fleet, clock }: ControlPlaneOptions,
  { changes, audit }: { readonly changes: Changes; readonly audit: AuditLog },
): EventHub {
  const events = new EventHub();
  fleet?.onNodeEvent((event) => publishWithReason(events, "node", { clock, event }));
  audit.onEntry((entry) => events.publish("audit", entry));
  changes.onServed((change) => {
    const { full, reduced } = configEventsOf(change);
    events.publish("config", full, reduced);
    for (const event of listenerEventsOf(change)) events.publish("listener", event);
  });
  return events;
}

/** `why` may be the message of any error: that is for admins. */
function publishWithReason<K extends "worker" | "node">(
  events: EventHub,
  kind: K,
  { clock, event }: { readonly clock: Clock; readonly event: Omit<EventPayloads[K], "at"> },
): void {
  // The payload is the event with its time.
  const full = { ...event, at: new Date(clock.now()).toISOString() } as EventPayloads[K];
  events.publish(kind, full, { ...full, why: null });
}
