// Replaces the secret key while the gateway runs, or offline: everything sealed, and what is derived from it; knows no file.
import { ApiError } from "../model/error.ts";
import { StoreError } from "../store/error.ts";
import type { StoredKey } from "../store/sealed-texts.ts";
import type { AuditLog } from "./audit.ts";
import type { Changes } from "./change.ts";
import type { FleetView, Reach } from "./fleet-view.ts";
import type { Actor } from "./principal.ts";
import type { SecretKeyFile } from "./sealing.ts";

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
  "which nodes have the new key is not known, because the database of the fleet does not respond: see the page Fleet";

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
