// A control plane between a store and workers that only record calls.
import { compileStored } from "../../../src/control/stored.ts";
import { configs, createControlPlane } from "../../../src/control-plane.ts";
import type { AuditRange, AuditStore, AuditEntry } from "../../../src/model/audit-entry.ts";
import type { Fact, StoredSecondFactor } from "../../../src/model/fact.ts";
import { catalogueOf } from "../../../src/pdk/catalogue.ts";
import { plugins } from "../../support/plugins.ts";
import { Changes } from "../../../src/control/change.ts";
import {
  ChangeConflict,
  type ChangeEvent,
  type ChangeStore,
  type RecordedFacts,
} from "../../../src/control/change-contract.ts";
import type { Rollout } from "../../../src/snapshot/rollout.ts";
import type { TotpStore } from "../../../src/auth/totp.ts";
import { fieldChecks } from "../../../src/control/field-checks.ts";
import type { WriteOptions } from "../../../src/control/resource.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { createLog } from "../../../src/log.ts";
import { decode } from "../../../src/model/decode.ts";
import type { Issue } from "../../../src/model/error.ts";
import type { ConfigChange, GatewayConfig } from "../../../src/model/gateway-config.ts";
import { type Listener, listenerInput } from "../../../src/model/listener.ts";
import { type Route, routeInput } from "../../../src/model/route.ts";
import { pathMatchOf } from "../../../src/model/route-match.ts";
import { type Service, serviceInput } from "../../../src/model/service.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { settingsInput } from "../../../src/model/settings.ts";
import { type Target, targetInput } from "../../../src/model/target.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";
import { compile } from "../../../src/snapshot/compile.ts";
import type { Compiled } from "../../../src/snapshot/compile-context.ts";
import type { Snapshot } from "../../../src/snapshot/snapshot.ts";

export const at = "2026-01-01T00:00:00.000Z";

const stamped = (id: string) => ({ id, created_at: at, updated_at: at });

export const service = (id: string, fields: object = {}): Service => ({
  ...stamped(id),
  ...decode(serviceInput, { name: id, ...fields }),
});
export const target = (id: string, fields: object): Target => ({
  ...stamped(id),
  ...decode(targetInput, { port: 80, ...fields }),
});
export const route = (id: string, fields: object = {}): Route => {
  const input = decode(routeInput, { name: id, ...fields });
  return { ...stamped(id), ...input, paths: input.paths.map(pathMatchOf) };
};
export const listener = (id: string, fields: object): Listener => ({
  ...stamped(id),
  ...decode(listenerInput, { name: id, ...fields }),
});

const byId = <T extends { readonly id: string }>(objects: readonly T[]) =>
  new Map(objects.map((object) => [object.id, object]));

export function configOf(parts: {
  services?: Service[];
  targets?: Target[];
  routes?: Route[];
  listeners?: Listener[];
  settings?: object;
}): GatewayConfig {
  return {
    ...emptyConfiguration(at),
    services: byId(parts.services ?? []),
    targets: byId(parts.targets ?? []),
    routes: byId(parts.routes ?? []),
    listeners: byId(parts.listeners ?? []),
    settings: { ...decode(settingsInput, parts.settings ?? {}), updated_at: at },
  };
}

export const context = {
  tls: { cert: "cert", key: "key" },
  managementAddresses: [{ address: "127.0.0.1", port: 9080 }],
  checks: fieldChecks,
  openSealed: (sealed: string) => sealed,
  plugins: catalogueOf(plugins),
};

/** Compiles and throws what is wrong as text. */
export function compiled(config: GatewayConfig, previous: Compiled | null = null): Compiled {
  const revision = (previous?.snapshot.revision ?? 0) + 1;
  const result = compile(config, previous, { ...context, revision });
  if ("issues" in result) throw new Error(JSON.stringify(result.issues));
  return result;
}

/** The rows of a table, until the test ends. */
class TotpMemory implements TotpStore {
  readonly #records = new Map<string, StoredSecondFactor>();

  get(userId: string): StoredSecondFactor | null {
    return this.#records.get(userId) ?? null;
  }

  all(): StoredSecondFactor[] {
    return [...this.#records.values()];
  }

  write({ user_id, record }: Extract<Fact, { kind: "second_factor" }>): void {
    if (record === null) this.#records.delete(user_id);
    else this.#records.set(user_id, record);
  }

  remove(userId: string): void {
    this.#records.delete(userId);
  }
}

/** Records the calls in order, and fails where a test wants it to. */
export class Steps implements Rollout, ChangeStore, AuditStore {
  readonly steps: string[] = [];
  readonly commits: { revision: number; change: ConfigChange; entry: object }[] = [];
  readonly fail: { prepare?: Error | Issue; commit?: Error; activate?: Error; discard?: Error } =
    {};
  /** Number of commits before which another change comes first. */
  conflicts = 0;
  /** What was stored beside the configuration without a change of it. */
  readonly facts: Fact[] = [];
  readonly totp = new TotpMemory();
  /** What was recorded beside the changes. */
  readonly recorded: AuditEntry[] = [];
  /** Awaited inside prepare, so that a test can hold a change there. */
  gate: Promise<void> = Promise.resolve();
  active = 0;

  async prepare(next: Snapshot): Promise<readonly Issue[]> {
    this.steps.push(`prepare ${next.revision}`);
    await this.gate;
    if (this.fail.prepare instanceof Error) throw this.fail.prepare;
    return this.fail.prepare === undefined ? [] : [this.fail.prepare];
  }

  async activate(revision: number): Promise<void> {
    this.steps.push(`activate ${revision}`);
    await Promise.resolve();
    if (this.fail.activate) throw this.fail.activate;
    this.active = revision;
  }

  async discard(revision: number): Promise<void> {
    this.steps.push(`discard ${revision}`);
    await Promise.resolve();
    if (this.fail.discard) throw this.fail.discard;
  }

  status() {
    return { workers: 2, ready: 2, revision: this.active };
  }

  commit(write: Parameters<ChangeStore["commit"]>[0]): void {
    this.steps.push(`commit ${write.revision}`);
    if (this.fail.commit) throw this.fail.commit;
    if (this.conflicts > 0) {
      this.conflicts--;
      throw new ChangeConflict("another change came first");
    }
    this.commits.push(write);
  }

  record(facts: readonly Fact[]): void {
    this.steps.push("record");
    this.facts.push(...facts);
    for (const fact of facts) if (fact.kind === "second_factor") this.totp.write(fact);
  }

  append(entries: readonly AuditEntry[]): void {
    this.recorded.push(...entries);
  }

  prune(): number {
    return 0;
  }

  range(): AuditRange | null {
    return null;
  }

  page() {
    return { entries: [], next: null };
  }

  latest() {
    return { entries: [], next: null };
  }
}

/** Records on a single machine, where that happens in the same turn; throws what `decide` throws. */
export function recorded<T>(changes: Pick<Changes, "record">, decide: () => RecordedFacts<T>): T {
  const result: { value?: T; error?: unknown } = {};
  const recording = changes.record(() => {
    try {
      const decided = decide();
      result.value = decided.value;
      return decided;
    } catch (error) {
      result.error = error;
      throw error;
    }
  });
  void recording.catch(() => undefined);
  if ("error" in result) throw result.error;
  return result.value as T;
}

/** Changes over this store, with a rollout that always succeeds. */
export const changesOf = (
  parts: Pick<ConstructorParameters<typeof Changes>[0], "store" | "clock" | "log" | "current">,
): Changes => new Changes({ ...parts, rollout: new Steps(), configs, context: () => context });

/** A store of tokens without any. */
export const noTokens = {
  loadAdminToken: () => null,
  loadUse: () => [],
  writeUse() {},
  removeUse() {},
};

export function controlPlane(
  config: GatewayConfig = configOf({}),
  now = () => Date.parse(at),
  targetBoard = TargetBoard.create(1),
) {
  const steps = new Steps();
  const events: ChangeEvent[] = [];
  const logged: string[] = [];
  const control = createControlPlane({
    instanceId: "test",
    store: steps,
    auditStore: steps,
    sessionStore: { load: () => [], ended: () => [], keepEnded() {} },
    tokenStore: noTokens,
    totpStore: steps.totp,
    credentialUseStore: { load: () => [], write() {}, remove() {} },
    plugins: context.plugins,
    revisionStore: { heads: () => [], get: () => null, touching: () => new Set(), after: () => [] },
    box: new SecretBox(new Uint8Array(32)),
    rollout: steps,
    targetBoard,
    clock: { now },
    log: createLog({ level: "info", format: "json", sink: (line) => logged.push(line) }),
    current: compileStored({ config, revision: 1 }, context),
    context: () => context,
  });
  control.changes.onServed((event) => {
    steps.steps.push(`event ${event.revision}`);
    events.push(event);
  });
  return { control, steps, events, logged };
}

export const options: WriteOptions = {
  by: { actor: "tester", method: "token", address: "127.0.0.1", sessionId: null },
  dryRun: false,
  conditions: { match: null, onlyIfAbsent: false },
};
