// What `upgrade` does for a node of a fleet before and after the handover: no two nodes at a time, and none while another one is missing; hands over nothing.
import { ChangeConflict } from "../control/change-contract.ts";
import { SecretBox } from "../crypto/secret-box.ts";
import { Appender } from "../fleet/appender.ts";
import { EntryCodec } from "../fleet/entry.ts";
import { FleetMeter } from "../fleet/meter.ts";
import { isSigned } from "../fleet/node-row.ts";
import { FleetError, type PostgresAddress, queryTimes } from "../fleet/postgres-connection.ts";

import { PostgresSource } from "../fleet/postgres-source.ts";
import { meaningOf } from "../fleet/postgres-words.ts";
import { type FleetNode, SourceUnreachable } from "../fleet/source.ts";
import { defaultTimes } from "../fleet/times.ts";
import { ApiError } from "../model/error.ts";
import type { FleetMembership } from "../store/inspect.ts";
import { readSecretKey } from "../store/secret-key.ts";
import type { CommandContext } from "./command.ts";

export interface FleetUpgradeOptions extends Pick<CommandContext, "env" | "print"> {
  readonly dataDir: string;
  readonly membership: FleetMembership;
  readonly address: PostgresAddress;
  /** How long the node drains before the handover; 0: it does not. Milliseconds. */
  readonly unreadyMs: number;
}

/** The handover may take 60 seconds, and so may the new process until it serves the last entry. */
const SERVE_MS = 60_000;
const HAND_OVER_MS = 60_000;
const DRAIN_MS = 5000;
const LOOK_MS = 100;

/** Refusals have the status 409: the old process serves on. */
export async function upgradeInFleet(
  options: FleetUpgradeOptions,
  handOver: () => Promise<void>,
): Promise<void> {
  const source = new PostgresSource({ ...options.address, ...queryTimes });
  try {
    await source.open();
    const codec = await codecOf(source, options);
    await new NodeUpgrade(source, codec, options).run(handOver);
  } catch (error) {
    if (!(error instanceof FleetError || error instanceof SourceUnreachable)) throw error;
    const reason = error instanceof FleetError ? error.message : meaningOf(error);
    throw refused(
      `the other nodes of the fleet cannot be seen: ${reason ?? "the database of --store does not answer"}`,
      error,
    );
  } finally {
    await source.close();
  }
}

const refused = (reason: string, cause?: unknown) =>
  new ApiError(409, `${reason}; --force hands over without a look at them`, { cause });

async function codecOf(
  source: PostgresSource,
  { dataDir, env, membership }: FleetUpgradeOptions,
): Promise<EntryCodec> {
  const key = readSecretKey({ dataDir, env });
  if (key === null)
    throw refused(`SLUICE_SECRET_KEY is missing: ${dataDir} has no file secret.key either`);
  const box = new SecretBox(key);
  const { fleetId } = membership;
  const fleet = await source.identify({ fleetId, keyId: box.keyId });
  if (fleet.fleetId !== fleetId || fleet.keyId !== box.keyId)
    throw refused("--store: the database is that of another fleet, or has another secret key");
  return new EntryCodec(fleetId, box.derive("fleet entries"));
}

const warnOf = (name: string) => (error: unknown) =>
  void process.stderr.write(
    `sluice: node ${name} may still drain (${error instanceof Error ? error.message : String(error)}): DELETE /api/v1/nodes/${name}/drain ends that\n`,
  );

class NodeUpgrade {
  readonly #source: PostgresSource;
  readonly #codec: EntryCodec;
  readonly #options: FleetUpgradeOptions;

  constructor(source: PostgresSource, codec: EntryCodec, options: FleetUpgradeOptions) {
    this.#source = source;
    this.#codec = codec;
    this.#options = options;
  }

  get #id(): string {
    return this.#options.membership.nodeId;
  }

  async run(handOver: () => Promise<void>): Promise<void> {
    const { print, unreadyMs } = this.#options;
    const { name, state, draining } = await this.#requireOthers();
    await this.#claim(unreadyMs + DRAIN_MS + HAND_OVER_MS + SERVE_MS);
    // A node that does not follow its log could not be asked to.
    const drains = unreadyMs > 0 && !draining && (state === "serving" || state === "lagging");
    try {
      if (drains) {
        print(`Node ${name} drains: load balancers have ${unreadyMs / 1000} s to leave.\n`);
        await this.#drain(name, true);
        await Bun.sleep(unreadyMs);
      }
      await handOver();
      await this.#untilServing();
      print(`Node ${name} serves all changes of its fleet.\n`);
    } finally {
      if (drains) await this.#drain(name, false).catch(warnOf(name));
      // Otherwise it ends by itself.
      await this.#source.claim("upgrade", this.#id, 0).catch(() => false);
    }
  }

  /** This node; throws when one of the others does not serve, so that too few would be left if the new process failed. */
  async #requireOthers(): Promise<FleetNode> {
    const nodes = await this.#source.nodes();
    const missing = nodes.flatMap((node) => {
      const problem = node.id === this.#id ? null : this.#problemOf(node);
      return problem === null ? [] : [`${node.name} (${problem})`];
    });
    if (missing.length > 0) throw refused(`other nodes do not serve: ${missing.join(", ")}`);
    const own = nodes.find(({ id }) => id === this.#id);
    if (own === undefined)
      throw refused("this node is not among those of the fleet: it has not reached its database");
    return own;
  }

  #problemOf(node: FleetNode): string | null {
    if (!isSigned(this.#codec, node)) return "not signed with the key of the fleet";
    if (node.seenMsAgo > defaultTimes.away) return "away";
    return node.state === "serving" || node.state === "lagging" ? null : node.state;
  }

  async #claim(ms: number): Promise<void> {
    if (await this.#source.claim("upgrade", this.#id, ms)) return;
    const holder = await this.#source.holder("upgrade");
    const node = (await this.#source.nodes()).find(({ id }) => id === holder);
    throw refused(`node ${node?.name ?? holder} is being upgraded; wait until it is done`);
  }

  /** Returns when the node says so. By the log, so that every version understands it. */
  async #drain(name: string, drained: boolean): Promise<void> {
    const fact = { kind: "node_drained", node_id: this.#id, drained } as const;
    const source = this.#source;
    const appender = new Appender({
      source,
      codec: this.#codec,
      node: name,
      doubtMs: defaultTimes.doubt,
      onLost: () => undefined,
      meter: new FleetMeter(),
      term: () => null,
    });
    for (let isAppended = false; !isAppended;) {
      const { head } = await source.after(Number.MAX_SAFE_INTEGER);
      const { knownId: previous } = await source.after(head);
      isAppended = await appender.append(head + 1, { changed: null, facts: [fact], previous }).then(
        () => true,
        (error: unknown) => {
          if (error instanceof ChangeConflict) return false;
          throw error;
        },
      );
    }
    const end = performance.now() + DRAIN_MS;
    while ((await this.#own())?.draining !== drained)
      if (performance.now() < end) await Bun.sleep(LOOK_MS);
      else throw refused(`node ${name} does not ${drained ? "drain" : "end to drain"}`);
  }

  /** The new process has reported that its workers serve the last entry of now. */
  async #untilServing(): Promise<void> {
    const { head } = await this.#source.after(Number.MAX_SAFE_INTEGER);
    const began = performance.now();
    for (;;) {
      const asked = performance.now();
      const own = await this.#own();
      const isNew = own !== null && own.seenMsAgo < asked - began;
      if (isNew && own.served >= head) return;
      if (performance.now() - began > SERVE_MS)
        throw new ApiError(
          409,
          `the new process does not serve the last change of the fleet after ${SERVE_MS / 1000} seconds: ${own?.error || own?.state || "it does not report to the database"}`,
        );
      await Bun.sleep(LOOK_MS);
    }
  }

  async #own(): Promise<FleetNode | null> {
    return (await this.#source.nodes()).find(({ id }) => id === this.#id) ?? null;
  }
}
