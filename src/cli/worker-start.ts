// What all workers get at the start, and the trial of stored plugins before them; starts no worker.
import { join } from "node:path";
import type { Log } from "../log.ts";
import { absentPlan } from "../plugin-directory/absent.ts";
import type { PluginDirectory } from "../plugin-directory/plugin-directory.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import { findRefused, trialOptions, untriedPlans } from "../supervisor/plugin-trial.ts";
import type { OpenedState } from "./opened-state.ts";
import type { ServeOptions } from "./serve.ts";
import { StartError } from "./start-error.ts";

/** Keys of the workers, from the secret key. */
export const workerKeys = (box: OpenedState["box"]) => ({
  stickyKey: box.derive("sticky cookies"),
  pluginKey: box.derive("plugins"),
});

/** What all workers get. */
export function workerStart({ store, box, stored }: OpenedState, options: ServeOptions) {
  const { dnsServers, counters, dataDir, logDir, httpEngine } = options;
  const cookieId = store.fleetId() ?? stored.instanceId;
  return {
    instanceId: stored.instanceId,
    cookieId,
    ...workerKeys(box),
    logDirectories: { directory: join(dataDir, "logs"), absolute: logDir },
    dnsServers,
    httpEngine,
    sharedCounters: counters && { ...counters, scope: cookieId },
  };
}

interface TrialParts {
  readonly options: ServeOptions;
  readonly plugins: PluginCatalogue;
  readonly pluginDirectory: PluginDirectory;
  /** Entry of a worker. */
  readonly url: URL;
  readonly log: Log;
}

/**
 * The state with instances that reject in place of those that cannot be created: a file may have changed while the gateway was
 * stopped, and one that loops would end each worker. A process that takes over refuses to start instead: the one before it goes on.
 */
export async function withTriedPlugins(
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
