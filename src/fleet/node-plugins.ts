// What this node serves from its directory of plugins, signed, for the list of nodes, and what the others have reported; sends no query.
import type { NodePlugin, NodePlugins, ReportingNode } from "../control/node-plugins.ts";
import type { Log } from "../log.ts";
import type { EntryCodec } from "./entry.ts";
import type { Follower } from "./follower.ts";
import type { StoredPlugins } from "./postgres-registry.ts";
import type { PostgresSource } from "./postgres-source.ts";

export interface FleetPluginsOptions {
  readonly source: Pick<PostgresSource, "writePlugins" | "plugins">;
  readonly codec: EntryCodec;
  /** Id of this node. */
  readonly id: string;
  readonly version: string;
  readonly log: Log;
  readonly follower: Pick<Follower, "onBeat" | "isConnected">;
  readonly directory: ServedDirectory;
}

interface ServedDirectory {
  /** By name; `hash`: of what is served, null: nothing is. */
  view(): {
    readonly plugins: readonly { readonly name: string; readonly hash: string | null }[];
  };
}

/** What is in the document of a node. Never changed: older versions read it. */
interface Content {
  /** Null: more than a node reports. */
  readonly plugins: readonly NodePlugin[] | null;
}

/** Of one node: the list is read whole, for up to 50 nodes. */
export const MAX_REPORTED = 100;

/** The row is written again after this time, in case that the database has lost it. */
const REPEAT_MS = 10_000;

export class FleetPlugins implements NodePlugins {
  readonly #options: FleetPluginsOptions;
  /** What the database has, and since when by the monotonic clock; null: nothing of this process. */
  #written: { readonly mac: string; readonly at: number } | null = null;
  #isWriting = false;
  #hasFailed = false;

  constructor(options: FleetPluginsOptions) {
    this.#options = options;
    options.follower.onBeat(() => this.#report());
  }

  /** Writes what has changed since the last heartbeat. */
  #report(): void {
    if (this.#isWriting || !this.#options.follower.isConnected) return;
    const { codec, id: node, version } = this.#options;
    const document = this.#document();
    const mac = codec.signPlugins([node, version], document);
    const isKnown = this.#written?.mac === hex(mac);
    if (isKnown && performance.now() - (this.#written?.at ?? 0) < REPEAT_MS) return;
    this.#isWriting = true;
    void this.#write({ node, document, mac }).finally(() => {
      this.#isWriting = false;
    });
  }

  async read(nodes: readonly ReportingNode[]): Promise<ReadonlyMap<string, readonly NodePlugin[]>> {
    // The list of nodes is worth more than this: after a start without the database the table may not be there yet.
    const rows = await this.#options.source.plugins().catch(() => []);
    const byNode = new Map(rows.map((row) => [row.node, row]));
    const read = nodes.flatMap((node) => {
      const plugins = this.#pluginsOf(node, byNode.get(node.id));
      return plugins === null ? [] : [[node.id, plugins] as const];
    });
    return new Map(read);
  }

  /** Of this node by its own knowledge. A node that went back to an older version leaves a row, signed for the newer one. */
  #pluginsOf({ id, version }: ReportingNode, row: StoredPlugins | undefined): Content["plugins"] {
    if (id === this.#options.id) return contentOf(this.#document()).plugins;
    const isCurrent =
      row !== undefined &&
      this.#options.codec.isSignedPlugins([id, version], row.document, row.mac);
    return isCurrent ? contentOf(row.document).plugins : null;
  }

  #document(): Uint8Array {
    const plugins = this.#options.directory
      .view()
      .plugins.flatMap(({ name, hash }) => (hash === null ? [] : [{ name, hash }]));
    const content: Content = { plugins: plugins.length > MAX_REPORTED ? null : plugins };
    return new TextEncoder().encode(JSON.stringify(content));
  }

  async #write(row: StoredPlugins): Promise<void> {
    try {
      await this.#options.source.writePlugins(row);
      this.#written = { mac: hex(row.mac), at: performance.now() };
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed)
        this.#options.log.warn("the plugins of this node could not be reported to the fleet", {
          error,
        });
      this.#hasFailed = true;
    }
  }
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const contentOf = (document: Uint8Array): Content =>
  JSON.parse(new TextDecoder().decode(document)) as Content;
