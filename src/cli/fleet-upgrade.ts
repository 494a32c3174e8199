// What `upgrade` does for a node of a fleet before and after the handover: no two nodes at a time, and none while another one is missing; hands over nothing.
import { ChangeConflict } from "../control/change-contract.ts";
import { SecretBox } from "../crypto/secret-box.ts";
import { Appender } from "../fleet/appender.ts";
import { type Entry, EntryCodec, Unfollowable } from "../fleet/entry.ts";
import { FleetMeter } from "../fleet/meter.ts";
import { SIGNING } from "../fleet/join.ts";
import { isSigned } from "../fleet/node-row.ts";
import { FleetError, type PostgresAddress, queryTimes } from "../fleet/postgres-connection.ts";
import { PostgresSource } from "../fleet/postgres-source.ts";
import { meaningOf } from "../fleet/postgres-words.ts";
import { type FleetNode, SourceUnreachable } from "../fleet/source.ts";
import { defaultTimes } from "../fleet/times.ts";
import { ApiError } from "../model/error.ts";
import type { EntryMark, Fact } from "../model/fact.ts";
import type { FleetMembership } from "../store/inspect.ts";
import { keyFromText, readSecretKey } from "../store/secret-key.ts";
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
    const box = await boxOf(source, options);
    await new NodeUpgrade(source, box, options).run(handOver);
  } catch (error) {
    if (!(error instanceof FleetError || error instanceof SourceUnreachable)) throw error;
    const reason = error instanceof FleetError ? error.message : meaningOf(error);
    throw refused(
      `the other nodes of the fleet cannot be seen: ${reason ?? "the database of --store does not respond"}`,
      error,
    );
  } finally {
    await source.close();
  }
}

const refused = (reason: string, cause?: unknown) =>
  new ApiError(409, `${reason}; --force hands over without a look at them`, { cause });

async function boxOf(
  source: PostgresSource,
  { dataDir, env, membership }: FleetUpgradeOptions,
): Promise<SecretBox> {
  const key = readSecretKey({ dataDir, env });
  if (key === null)
    throw refused(`SLUICE_SECRET_KEY is missing: ${dataDir} has no file secret.key either`);
  const box = new SecretBox(key);
  const { fleetId } = membership;
  const fleet = await source.identify({ fleetId, keyId: box.keyId });
  if (fleet.fleetId !== fleetId || fleet.keyId !== box.keyId)
    throw refused("--store: the database is that of another fleet, or has another secret key");
  return box;
}

/** The key of what follows `entry`, when that was signed with the one of `box`; null: it was not. */
function keyAfter(entry: Entry, fleetId: string, box: SecretBox): SecretBox | null {
  try {
    const { facts } = new EntryCodec(fleetId, box.derive(SIGNING)).decode(entry);
    const next = facts.find(({ kind }) => kind === "secret_key");
    if (next?.kind !== "secret_key") return box;
    return new SecretBox(keyFromText(box.open(next.sealed), "the new secret key"));
  } catch (error) {
    if (error instanceof Unfollowable) return null;
    throw error;
  }
}

const warnOf = (name: string) => (error: unknown) =>
  void process.stderr.write(
    `sluice: node ${name} may still drain (${error instanceof Error ? error.message : String(error)}): DELETE /api/v1/nodes/${name}/drain ends that\n`,
  );

function problemOf(node: FleetNode, codec: EntryCodec): string | null {
  if (!isSigned(codec, node)) return "not signed with the key of the fleet";
  if (node.seenMsAgo > defaultTimes.away) return "away";
  return node.state === "serving" || node.state === "lagging" ? null : node.state;
}

class NodeUpgrade {
  readonly #source: PostgresSource;
  readonly #box: SecretBox;
  readonly #options: FleetUpgradeOptions;
  /** Another command for the same node is another holder. */
  readonly #holder: string;

  constructor(source: PostgresSource, box: SecretBox, options: FleetUpgradeOptions) {
    this.#source = source;
    this.#box = box;
    this.#options = options;
    this.#holder = `${options.membership.nodeId}/${Bun.randomUUIDv7()}`;
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
      await this.#source.claim("upgrade", this.#holder, 0).catch(() => false);
    }
  }

  /** This node; throws when one of the others does not serve, so that too few would be left if the new process failed. */
  async #requireOthers(): Promise<FleetNode> {
    const nodes = await this.#source.nodes();
    const codec = this.#codecOf(this.#box);
    const missing = nodes.flatMap((node) => {
      const problem = node.id === this.#id ? null : problemOf(node, codec);
      return problem === null ? [] : [`${node.name} (${problem})`];
    });
    if (missing.length > 0) throw refused(`other nodes do not serve: ${missing.join(", ")}`);
    const own = nodes.find(({ id }) => id === this.#id);
    if (own === undefined)
      throw refused("this node is not among those of the fleet: it has not reached its database");
    return own;
  }

  async #claim(ms: number): Promise<void> {
    if (await this.#source.claim("upgrade", this.#holder, ms)) return;
    const [holder] = (await this.#source.holder("upgrade")).split("/");
    const node = (await this.#source.nodes()).find(({ id }) => id === holder);
    throw refused(`node ${node?.name ?? holder} is being upgraded; wait until it is done`);
  }

  /** Returns when the node says so. By the log, so that every version understands it. */
  async #drain(name: string, drained: boolean): Promise<void> {
    const fact = { kind: "node_drained", node_id: this.#id, drained } as const;
    const audited = this.#auditOf(drained ? "drain" : "undrain", name);
    const source = this.#source;
    for (let isAppended = false; !isAppended;) {
      const { position, id: previous, codec } = await this.#lastEntry();
      const appender = new Appender({
        source,
        codec,
        node: name,
        doubtMs: defaultTimes.doubt,
        onLost: () => undefined,
        meter: new FleetMeter(),
        term: () => null,
      });
      const content = { changed: null, facts: [fact, audited], previous };
      isAppended = await appender.append(position + 1, content).then(
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

  /** For the audit logs of all nodes. */
  #auditOf(action: string, name: string): Fact {
    const entry = {
      at: new Date().toISOString(),
      actor: "local",
      method: "local",
      address: "",
      action,
      kind: "node",
      object_id: this.#id,
      object_name: name,
      result: "ok",
      revision: null,
      detail: {},
    };
    const nothing = { login_failures: [], tokens_used: [], credentials_used: [] };
    // Not the id of a node: that would have written it already.
    const batch = { batch_id: Bun.randomUUIDv7(), node_id: "upgrade", ...nothing };
    return { kind: "node_activity", activity: { ...batch, audit: [entry] } };
  }

  #codecOf(box: SecretBox): EntryCodec {
    return new EntryCodec(this.#options.membership.fleetId, box.derive(SIGNING));
  }

  /** With what signs the entry after it: no node could follow one that is signed with a former secret key. */
  async #lastEntry(): Promise<EntryMark & { readonly codec: EntryCodec }> {
    const end = performance.now() + DRAIN_MS;
    do {
      const { head } = await this.#source.after(Number.MAX_SAFE_INTEGER);
      const [newest] = (await this.#source.after(head - 1)).entries;
      const last = newest ?? (await this.#source.whole());
      const box = last?.position === head ? this.#keyAfter(last) : null;
      if (last !== null && box !== null)
        return { position: head, id: last.id, codec: this.#codecOf(box) };
      await Bun.sleep(LOOK_MS);
    } while (performance.now() < end);
    throw refused("the last entry of the log is not signed with the secret key of this command");
  }

  /** This node replaces the file of the key when it follows a rotation. */
  #keyAfter(entry: Entry): SecretBox | null {
    const { fleetId } = this.#options.membership;
    const former = keyAfter(entry, fleetId, this.#box);
    const present = former === null ? readSecretKey(this.#options) : null;
    return present === null ? former : keyAfter(entry, fleetId, new SecretBox(present));
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
