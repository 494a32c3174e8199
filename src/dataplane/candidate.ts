// The candidate version: built beside the live one, with everything opened for it; knows no command and changes nothing live.
import type { Issue } from "../model/error.ts";
import type { SnapshotChange, SnapshotPiece } from "../snapshot/snapshot.ts";
import { type Generation, GenerationBuilder, type GenerationContext } from "./generation.ts";
import { Intents } from "./intents.ts";
import type { Listeners, OpenedListeners } from "./listener/listeners.ts";
import type { Geo } from "./plugin/geo.ts";
import type { PluginEdit, PluginLoader } from "./plugin/plugin-loader.ts";
import { PluginSet } from "./plugin/plugin-set.ts";
import { discardPorts, type OpenedPorts, type Streams } from "./stream/streams.ts";
import type { OpenedUdpPorts, UdpStreams } from "./stream/udp-streams.ts";

/** What building a candidate needs. */
export interface CandidateParts extends Omit<GenerationContext, "intents"> {
  /** The live version; null: none yet. */
  readonly live: Generation | null;
  readonly plugins: PluginLoader;
  readonly listeners: Listeners;
  readonly streams: Streams;
  readonly udp: UdpStreams;
  readonly geo: Geo;
}

/** A candidate that is ready to be activated. */
export interface PreparedVersion {
  readonly generation: Generation;
  /** Bound for this version only. */
  readonly opened: OpenedListeners;
  readonly openedPorts: OpenedPorts;
  readonly openedUdp: OpenedUdpPorts;
  /** Ids of services that the version adds, changes or removes, and of routes that it removes. */
  readonly changedServices: ReadonlySet<string>;
  readonly removedRoutes: ReadonlySet<string>;
}

export class Candidate {
  readonly revision: number;
  /** Run when the version is activated, dropped when it is discarded. */
  readonly intents = new Intents();
  readonly #parts: CandidateParts;
  readonly #builder: GenerationBuilder;
  readonly #plugins: PluginEdit;
  /** Null until `prepare` has succeeded. */
  prepared: PreparedVersion | null = null;

  constructor(revision: number, parts: CandidateParts) {
    const { live, plugins: loader } = parts;
    const { intents } = this;
    this.revision = revision;
    this.#parts = parts;
    this.#builder = new GenerationBuilder(live, { ...parts, intents });
    this.#plugins = loader.edit(live?.plugins ?? PluginSet.empty);
    intents.onDiscard(() => void loader.retire(this.#plugins.made, PluginSet.empty));
  }

  /** Adds a part of the change. */
  async take(piece: SnapshotPiece): Promise<void> {
    await this.#builder.add(piece);
    await this.#plugins.apply(piece.plugins, this.#parts.pace);
  }

  /** Adds the rest and binds what the version needs. With issues it cannot be served: discard it. */
  async prepare(change: SnapshotChange): Promise<readonly Issue[]> {
    await this.take(change);
    await this.#plugins.renew(this.#parts.pace);
    if (this.#plugins.issues.length > 0) return this.#plugins.issues;
    const { intents } = this;
    const { listeners, streams, udp, geo } = this.#parts;
    const generation = this.#builder.finish(change, this.#plugins.finish());
    const http = await listeners.prepare(generation);
    intents.onDiscard(() => listeners.discard(http.opened));
    const tcp = streams.prepare(generation);
    intents.onDiscard(() => discardPorts(tcp.opened));
    const datagrams = await udp.prepare(generation);
    intents.onDiscard(() => udp.discard(datagrams.opened));
    await geo.prepare(generation.settings.geoip);
    intents.onDiscard(() => geo.discard());
    const { changedServices, removedRoutes } = this.#builder;
    const [opened, openedPorts, openedUdp] = [http.opened, tcp.opened, datagrams.opened];
    this.prepared = { generation, opened, openedPorts, openedUdp, changedServices, removedRoutes };
    return [...http.issues, ...tcp.issues, ...datagrams.issues];
  }
}
