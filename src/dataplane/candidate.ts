// A version in the making: built beside the live one, with all that was opened for it; knows no command and changes nothing live.
import type { Issue } from "../model/error.ts";
import type { SnapshotChange } from "../snapshot/snapshot.ts";
import { type Generation, type GenerationContext, nextGeneration } from "./generation.ts";
import { Intents } from "./intents.ts";
import type { Listeners, OpenedListeners } from "./listener/listeners.ts";
import type { Geo } from "./plugin/geo.ts";
import type { PluginLoader } from "./plugin/plugin-loader.ts";
import { PluginSet } from "./plugin/plugin-set.ts";
import { discardPorts, type OpenedPorts, type Streams } from "./stream/streams.ts";
import type { OpenedUdpPorts, UdpStreams } from "./stream/udp-streams.ts";

/** What a candidate is made from. */
export interface CandidateParts extends Omit<GenerationContext, "plugins" | "intents"> {
  /** What is served meanwhile; null: nothing yet. */
  readonly live: Generation | null;
  readonly plugins: PluginLoader;
  readonly listeners: Listeners;
  readonly streams: Streams;
  readonly udp: UdpStreams;
  readonly geo: Geo;
}

export interface Candidate {
  readonly generation: Generation;
  /** Run by `activate` or dropped by `discard`. */
  readonly intents: Intents;
  /** Bound for this version only. */
  readonly opened: OpenedListeners;
  readonly openedPorts: OpenedPorts;
  readonly openedUdp: OpenedUdpPorts;
  /** Ids of what the version brings, changes or takes away. */
  readonly services: ReadonlySet<string>;
  readonly removedRoutes: ReadonlySet<string>;
}

/** Builds the next version; the issues say why it cannot be served, and then nothing of it is left. */
export async function prepareCandidate(
  change: SnapshotChange,
  parts: CandidateParts,
): Promise<Candidate | readonly Issue[]> {
  const intents = new Intents();
  const { live, plugins: loader, listeners, streams, udp, geo } = parts;
  const plugins = await loader.load(live?.plugins ?? PluginSet.empty, change.plugins);
  intents.onDiscard(() => void loader.retire(plugins.made, PluginSet.empty));
  if (plugins.issues.length > 0) {
    intents.discard();
    return plugins.issues;
  }
  const generation = nextGeneration(live, change, { ...parts, plugins: plugins.set, intents });
  const http = listeners.prepare(generation);
  intents.onDiscard(() => listeners.discard(http.opened));
  const tcp = streams.prepare(generation);
  intents.onDiscard(() => discardPorts(tcp.opened));
  const datagrams = await udp.prepare(generation);
  intents.onDiscard(() => udp.discard(datagrams.opened));
  await geo.prepare(generation.settings.geoip);
  intents.onDiscard(() => geo.discard());
  const issues = [...http.issues, ...tcp.issues, ...datagrams.issues];
  if (issues.length > 0) {
    intents.discard();
    return issues;
  }
  const { services, routes } = change;
  return {
    ...{ generation, intents },
    ...{ opened: http.opened, openedPorts: tcp.opened, openedUdp: datagrams.opened },
    services: new Set([...services.upserts.map(({ id }) => id), ...services.removals]),
    removedRoutes: new Set(routes.removals),
  };
}
