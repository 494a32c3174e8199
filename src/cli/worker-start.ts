// What all workers get at the start, and what is tried before them: ports, and stored plugins; starts no worker.
import { join } from "node:path";
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { absentPlan } from "../plugin-directory/absent.ts";
import type { PluginDirectory } from "../plugin-directory/plugin-directory.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { findRefused, trialOptions, untriedPlans } from "../supervisor/plugin-trial.ts";
import { failingPorts } from "../supervisor/port-probe.ts";
import type { UnboundPorts } from "../supervisor/unbound-ports.ts";
import { type OpenedState, openState } from "./opened-state.ts";
import type { ServeOptions } from "./serve.ts";
import { refuse, StartError } from "./start-error.ts";

/** Keys of the workers, from the secret key. */
export const workerKeys = (box: OpenedState["box"]) => ({
  stickyKey: box.derive("sticky cookies"),
  pluginKey: box.derive("plugins"),
});

/** What all workers get. */
export function workerStart({ membership, box, stored }: OpenedState, options: ServeOptions) {
  const { dnsServers, counters, dataDir, logDir, httpEngine } = options;
  const cookieId = membership?.codec.fleetId ?? stored.instanceId;
  return {
    instanceId: stored.instanceId,
    cookieId,
    ...workerKeys(box),
    logDirectories: { directory: join(dataDir, "logs"), absolute: logDir },
    bodyDirectory: dataDir,
    dnsServers,
    httpEngine,
    sharedCounters: counters && { ...counters, scope: cookieId },
  };
}

/** The state that the workers are to serve. */
export async function openTried(parts: TrialParts, clock: Clock): Promise<OpenedState> {
  const state = await openState(parts.options, { ...parts, clock });
  // The former process holds its ports, and shares them.
  if (parts.isAlone) await tryPorts(state, parts.unbound);
  return await withTriedPlugins(state, parts);
}

/**
 * A later start serves without the ports that are taken, so that the management API can change them. The first one has stored
 * nothing: the next is free to choose others.
 */
async function tryPorts(
  { store, current: { snapshot } }: OpenedState,
  unbound: UnboundPorts,
): Promise<void> {
  if (store.isEmpty()) refuse((await failingPorts(null, snapshot)).map(({ issue }) => issue));
  else await unbound.begin(snapshot);
}

interface TrialParts {
  readonly options: ServeOptions;
  readonly plugins: PluginCatalogue;
  readonly pluginDirectory: PluginDirectory;
  /** Entry of a worker. */
  readonly url: URL;
  readonly log: Log;
  readonly unbound: UnboundPorts;
  /** Whether no other process serves the data directory, and its ports. */
  readonly isAlone: boolean;
}

/**
 * The state with instances that reject in place of those that cannot be created: a file may have changed while the gateway was
 * stopped, and one that loops would end each worker. A process that takes over refuses to start instead: the one before it goes on.
 */
async function withTriedPlugins(
  state: OpenedState,
  { options, plugins, pluginDirectory, url, log }: TrialParts,
): Promise<OpenedState> {
  const { current, context } = state;
  const { snapshot } = current;
  // Those of built-in plugins were tried when they were written.
  const untried = untriedPlans(null, snapshot, () => undefined);
  const { managementAddresses } = context();
  const start = trialOptions({ url, ...workerStart(state, options), managementAddresses });
  const reasons = await findRefused(snapshot, untried, start);
  if (reasons.size === 0) return state;
  const refused = untried.flatMap((plan) => {
    const why = reasons.get(plan.id);
    return why === undefined ? [] : [{ plan, why }];
  });
  if (options.takeOver) throw new StartError(refused.map(({ why }) => why).join("; "));
  pluginDirectory.refuseInstances(refused);
  log.error("instances of plugins cannot be created: they reject their requests with 503", {
    instances: refused.map(({ plan }) => plan.id),
  });
  const plans = new Map(snapshot.plugins);
  for (const { plan } of refused) plans.set(plan.id, absentPlan(plan, plugins.get(plan.name)));
  return { ...state, current: { ...current, snapshot: { ...snapshot, plugins: plans } } };
}
