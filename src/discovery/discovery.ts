// The sources of this gateway: containers, and files of a directory.
import type { SourceView } from "./source-view.ts";
import type { Identity } from "../model/fields.ts";
import { collectionNames, type GatewayConfig } from "../model/gateway-config.ts";
import { Pace, type Steps } from "../pace.ts";
import { DockerSource, type DockerOptions } from "./docker.ts";
import { type ConfigFiles, FileSource } from "./files.ts";
import { ManagedSource } from "./managed-source.ts";

export interface DiscoveryOptions extends Omit<DockerOptions, "owner"> {
  /** Name of this node of a fleet; null: there is none. */
  readonly node: string | null;
  readonly importerUrl?: URL;
  /** Null: there is no directory. */
  readonly files: ConfigFiles | null;
}

export class DiscoverySources {
  readonly #options: DiscoveryOptions;
  readonly #docker: DockerSource;
  readonly #files: FileSource | null;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#docker = new DockerSource({ ...options, owner: this.#owner("docker") });
    this.#files =
      options.files === null
        ? null
        : new FileSource({ ...options, ...options.files, owner: this.#owner("files") });
  }

  start(): void {
    this.#docker.start();
    if (this.#files === null) void this.#forgetFiles();
    else this.#files.start();
  }

  /** Objects of a former directory: people could not change them. */
  async #forgetFiles(): Promise<void> {
    const { changes, log } = this.#options;
    const source = new ManagedSource(this.#owner("files"), this.#options);
    try {
      const isMade = await new Pace({ objects: 1000, ms: 5 }).run(
        has(changes.config, source.owner),
      );
      if (isMade) await source.apply([]);
    } catch (error) {
      log.warn("objects of a former --config-dir could not be deleted", { error });
    }
  }

  #owner(name: string): string {
    const { node } = this.#options;
    // Each node has containers and files of its own, and deletes only what it has found itself.
    return node === null ? name : `${name}@${node}`;
  }

  /** Resolves when no change is under way. */
  async stop(): Promise<void> {
    await Promise.all([this.#docker.stop(), this.#files?.stop()]);
  }

  /** For the status, which everyone may read: without names. */
  warnings(): readonly string[] {
    return this.list().flatMap(({ name, state, sites }) => {
      const count = sites.filter(({ problems }) => problems.length > 0).length;
      return [
        ...(state === "failed" ? [`discovery of ${name} fails: see Discovered`] : []),
        ...(count === 0 ? [] : [`${count} of ${name} not served as described: see Discovered`]),
      ];
    });
  }

  list(): readonly SourceView[] {
    return [this.#docker.view(), ...(this.#files === null ? [] : [this.#files.view()])];
  }
}

function* has(config: GatewayConfig, owner: string): Steps<boolean> {
  for (const name of collectionNames)
    for (const object of config[name].values() as Iterable<Identity>) {
      if (object.managed_by === owner) return true;
      yield;
    }
  return false;
}
