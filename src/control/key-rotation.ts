// Replaces the secret key while the gateway runs, or offline: everything sealed, and what is derived from it; knows no file.
import type { SecretBox } from "../crypto/secret-box.ts";
import { ApiError } from "../model/error.ts";
import { type ConfigChange, type GatewayConfig, mapCollections } from "../model/gateway-config.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { StoreError } from "../store/error.ts";
import type { StoredKey } from "../store/sealed-texts.ts";
import type { ChangesOptions } from "./change-contract.ts";
import { Draft } from "./draft.ts";
import type { AuditLog } from "./audit.ts";
import type { Changes } from "./change.ts";
import type { FleetView, Reach } from "./fleet-view.ts";
import type { Actor } from "./principal.ts";
import type { SecretKeyFile } from "./sealing.ts";
import type { Stamp } from "./stamp.ts";

export interface KeyRotationOptions {
  readonly control: {
    readonly changes: Changes;
    readonly audit: AuditLog;
    /** Null: there is only this node. */
    readonly fleet: FleetView | null;
  };
  readonly key: SecretKeyFile;
  readonly store: {
    readonly secretKey: Pick<StoredKey, "rehearse">;
    /** Removes replaced values from the file. */
    compact(): void;
  };
}

export interface KeyRequest {
  /** 32 bytes in base64, base64url or hexadecimal; null: one is created. */
  readonly new_key: string | null;
  /** Whether nodes of the fleet may be missing. */
  readonly force: boolean;
}

export interface KeyRotated {
  readonly key_id: string;
  readonly former_key_id: string;
  /** Where the next start expects the new key. */
  readonly source: "file" | "variable";
  /** What could not be done after the rotation; null: nothing. */
  readonly warning: string | null;
  /** The nodes that have the new key; null: there is no fleet. */
  readonly nodes: Reach | null;
}

/** Time for the other nodes to follow. Milliseconds. */
const FOLLOW_MS = 10_000;

const UNKNOWN_NODES =
  "which nodes have the new key is not known, because the database of the fleet does not answer: see the page Fleet";

export class KeyRotation {
  readonly #options: KeyRotationOptions;

  constructor(options: KeyRotationOptions) {
    this.#options = options;
  }

  /** Throws an ApiError with the reason when nothing was changed. */
  async rotate({ new_key, force }: KeyRequest, by: Actor): Promise<KeyRotated> {
    const { control, key, store } = this.#options;
    const { changes, audit, fleet } = control;
    if (fleet !== null && !force) await fleet.requirePresent("all");
    await fleet?.requireKeyOnAll();
    const { key_id, former_key_id } = await changes.recordAlone(() => {
      const { keyId } = key.box;
      const fact = key.offer(new_key);
      if (fleet !== null) rehearse(store.secretKey, fact);
      return { value: { key_id: fact.key_id, former_key_id: keyId }, facts: [fact] };
    }, by);
    audit.record({
      actor: by.actor,
      method: by.method,
      address: by.address,
      action: "rotate",
      kind: "secret_key",
      object_id: null,
      object_name: null,
      result: "ok",
      revision: null,
      detail: { from: former_key_id, to: key_id },
    });
    const done = { key_id, former_key_id, source: key.source };
    if (fleet === null) return { ...done, warning: compact(store), nodes: null };
    // Each node compacts its own file.
    const nodes = await fleet.reachStored(FOLLOW_MS).catch(() => null);
    return { ...done, warning: nodes === null ? UNKNOWN_NODES : null, nodes };
  }
}

/** What is in the log cannot be taken back. */
function rehearse(key: Pick<StoredKey, "rehearse">, fact: Parameters<StoredKey["rehearse"]>[0]) {
  try {
    key.rehearse(fact);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new ApiError(409, `${error.message}; nothing was changed`);
  }
}

function compact(store: KeyRotationOptions["store"]): string | null {
  try {
    store.compact();
    return null;
  } catch (error) {
    return `free parts of the database file still hold values encrypted with the former key, because it could not be compacted: ${(error as Error).message}`;
  }
}

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
