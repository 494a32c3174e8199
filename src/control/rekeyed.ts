// A configuration and its version under another secret key, and the rollout of that version; changes nothing by itself.
import type { SecretBox } from "../crypto/secret-box.ts";
import { type ConfigChange, type GatewayConfig, mapCollections } from "../model/gateway-config.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import type { ChangesOptions } from "./change-contract.ts";
import { Draft } from "./draft.ts";
import type { Stamp } from "./stamp.ts";

/** A configuration whose values are sealed under the present key. */
export function renewed(
  config: GatewayConfig,
  box: Pick<SecretBox, "renew">,
  stamp: Stamp,
): GatewayConfig {
  const renewedOne = (object: object): object | null => {
    const text = JSON.stringify(object);
    const next = text.includes("sealed:1:") ? box.renew(text) : text;
    return next === text ? null : (JSON.parse(next) as object);
  };
  const collections = mapCollections((name) => ({
    upserts: [...config[name].values()].flatMap((object) => renewedOne(object) ?? []),
    removals: [],
  }));
  const singletons = { settings: renewedOne(config.settings), sso: renewedOne(config.sso) };
  // Of the same types as in the configuration.
  const change = { ...collections, ...singletons } as unknown as ConfigChange;
  return Draft.of(change, config, stamp).config;
}

/** The version whose parts depend on derived keys are other objects, so that workers create them again. */
export function rekeyed(snapshot: Snapshot): Snapshot {
  const services = [...snapshot.services].map(
    ([id, plan]) => [id, plan.service.sticky.enabled ? { ...plan } : plan] as const,
  );
  return { ...snapshot, services: new Map(services) };
}

/** Whether all workers serve it, also with the revision that they serve; never rejects. `failure`: for the log. */
export async function rollOut(
  snapshot: Snapshot,
  failure: string,
  { rollout, log }: Pick<ChangesOptions, "rollout" | "log">,
): Promise<boolean> {
  try {
    const [problem] = await rollout.prepare(snapshot);
    if (problem !== undefined) throw new Error(problem.message);
    await rollout.activate(snapshot.revision);
    return true;
  } catch (error) {
    log.error(failure, { error });
    return false;
  }
}
