// Compiles the configuration into a snapshot, or lists its problems; pure, and its cost follows the size of the change.
import type { Compiled, CompileContext } from "./compile-context.ts";
import { finish, type Steps } from "../pace.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { portsOf } from "../model/stream-route.ts";
import type { Listener } from "../model/listener.ts";
import type { Target } from "../model/target.ts";
import { checkSteps, differenceOf } from "./cross-rules.ts";
import type { ConfigDifference } from "./candidate.ts";
import type { Problem } from "./problem.ts";
import { shadowSteps } from "./shadow.ts";
import { consumerSource } from "./consumer-plans.ts";
import { planPlugins } from "./plugin-plans.ts";
import { pairOf, planCertificates, planForAddresses } from "./certificate-plans.ts";
import type { ListenerPlan, ServicePlan, Snapshot, StreamRoutePlan } from "./snapshot.ts";

export type CompileResult = Compiled | { readonly issues: readonly Problem[] };

/**
 * Compiles `config`. An object that is the same as in `previous` is not checked again and reuses its plan; with null
 * everything is checked. The result is a valid configuration or the list of its problems.
 */
export const compile = (
  config: GatewayConfig,
  previous: Compiled | null,
  context: CompileContext,
): CompileResult => finish(compileSteps(config, previous, context));

/** The same in steps. */
export function* compileSteps(
  config: GatewayConfig,
  previous: Compiled | null,
  context: CompileContext,
): Steps<CompileResult> {
  const difference = differenceOf(previous?.config ?? null, config);
  const candidate = { config, previous: previous?.config ?? null, difference };
  const issues = yield* checkSteps(candidate, context);
  if (issues.length > 0) return { issues };
  const certificates = planCertificates(config, previous, context);
  const tls = planForAddresses(config, certificates) ?? context.tls;
  const snapshot: Snapshot = {
    revision: context.revision,
    services: planServices({ config, difference }, previous, context),
    routes: config.routes,
    listeners: planListeners(config, previous, tls),
    streamRoutes: planStreamRoutes(config, previous, context),
    certificates,
    plugins: planPlugins({ config, difference }, previous, context),
    consumers: consumerSource({ config, difference }, previous, context),
    settings: config.settings,
  };
  const before =
    previous === null ? null : { shadows: previous.shadows, routes: previous.config.routes };
  const shadows = yield* shadowSteps(before, difference.routes, config.routes);
  return { config, snapshot, shadows };
}

/**
 * One sentence per likely mistake that is valid, by the id of its object; only for the objects that `isAskedFor` selects,
 * because there can be thousands.
 */
export function warningsOf(
  { config, shadows }: Compiled,
  isAskedFor: (id: string) => boolean = () => true,
): ReadonlyMap<string, string> {
  const warnings = new Map<string, string>();
  const label = (id: string) => `route "${config.routes.get(id)?.name ?? id}"`;
  for (const [hidden, by] of shadows.cover.coveredBy) {
    if (!isAskedFor(hidden)) continue;
    warnings.set(
      hidden,
      `${label(hidden)} matches no request: ${label(by)} has a higher priority and matches all requests for its hosts and paths`,
    );
  }
  for (const [hidden, by] of shadows.hiddenBy) {
    if (!isAskedFor(hidden)) continue;
    warnings.set(
      hidden,
      `${label(hidden)} matches no request: ${label(by)} has the same hosts and paths and is tried first`,
    );
  }
  return warnings;
}

function planServices(
  { config, difference }: { config: GatewayConfig; difference: ConfigDifference },
  previous: Compiled | null,
  { openSealed }: CompileContext,
): Snapshot["services"] {
  const affected = new Set(difference.services.upserts.map(({ id }) => id));
  const renewed = new Set<string | null>(difference.certificates.upserts.map(({ id }) => id));
  if (renewed.size > 0)
    for (const { id, tls } of config.services.values())
      if (renewed.has(tls.client_certificate_id)) affected.add(id);
  for (const target of difference.targets.upserts) {
    affected.add(target.service_id);
    const old = previous?.config.targets.get(target.id);
    if (old !== undefined) affected.add(old.service_id);
  }
  for (const id of difference.targets.removals) {
    const old = previous?.config.targets.get(id);
    if (old !== undefined) affected.add(old.service_id);
  }
  if (previous !== null && affected.size + difference.services.removals.length === 0)
    return previous.snapshot.services;
  const targets = new Map<string, Target[]>();
  for (const id of affected) targets.set(id, []);
  for (const target of config.targets.values())
    if (target.enabled) targets.get(target.service_id)?.push(target);
  const plans = new Map<string, ServicePlan>(previous?.snapshot.services);
  for (const id of difference.services.removals) plans.delete(id);
  for (const id of affected) {
    const service = config.services.get(id);
    if (service === undefined) continue;
    // Without targets a disabled service gets no traffic.
    const own = config.certificates.get(service.tls.client_certificate_id ?? "");
    plans.set(id, {
      id,
      service,
      clientCertificate: pairOf(own, openSealed),
      targets: service.enabled ? (targets.get(id) ?? []) : [],
    });
  }
  return plans;
}

function planListeners(
  config: GatewayConfig,
  previous: Compiled | null,
  tls: CompileContext["tls"],
): Snapshot["listeners"] {
  const old = previous?.snapshot.listeners;
  const plans = new Map<string, ListenerPlan>();
  let unchanged = 0;
  for (const listener of config.listeners.values()) {
    if (!listener.enabled) continue;
    const plan = planListener(listener, old?.get(listener.id), tls);
    if (plan === old?.get(listener.id)) unchanged++;
    plans.set(listener.id, plan);
  }
  return old !== undefined && unchanged === plans.size && unchanged === old.size ? old : plans;
}

function planStreamRoutes(
  config: GatewayConfig,
  previous: Compiled | null,
  { tls, openSealed }: CompileContext,
): Snapshot["streamRoutes"] {
  const old = previous?.snapshot.streamRoutes;
  const plans = new Map<string, StreamRoutePlan>();
  let unchanged = 0;
  for (const route of config.stream_routes.values()) {
    if (!route.enabled) continue;
    const own = config.certificates.get(route.certificate_id ?? "");
    const before = old?.get(route.id);
    const isUnchanged =
      before?.route === route &&
      own === previous?.config.certificates.get(route.certificate_id ?? "");
    if (isUnchanged) unchanged++;
    const chosen = pairOf(own, openSealed) ?? tls;
    plans.set(
      route.id,
      isUnchanged
        ? before
        : {
            id: route.id,
            route,
            ports: portsOf(route),
            tls: route.tls_mode === "terminate" ? chosen : null,
          },
    );
  }
  return old !== undefined && unchanged === plans.size && unchanged === old.size ? old : plans;
}

function planListener(
  listener: Listener,
  old: ListenerPlan | undefined,
  certificate: CompileContext["tls"],
): ListenerPlan {
  const tls = listener.protocol === "https" ? certificate : null;
  if (old?.listener === listener && old.tls === tls) return old;
  return { id: listener.id, listener, tls };
}
