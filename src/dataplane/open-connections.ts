// The connections of one worker that outlast a request: of stream routes, and upgraded ones; knows no version.
import type {
  EndedPaths,
  StreamConnectionView,
  UpgradedConnectionView,
} from "../snapshot/message.ts";
import type { Streams } from "./stream/streams.ts";
import type { UdpStreams } from "./stream/udp-streams.ts";
import type { WebSockets } from "./websocket/sessions.ts";

export class OpenConnections {
  readonly #streams: Streams;
  readonly #udp: UdpStreams;
  readonly #webSockets: WebSockets;

  constructor(parts: {
    readonly streams: Streams;
    readonly udp: UdpStreams;
    readonly webSockets: WebSockets;
  }) {
    this.#streams = parts.streams;
    this.#udp = parts.udp;
    this.#webSockets = parts.webSockets;
  }

  ofStreamRoute(id: string): StreamConnectionView[] {
    return [...this.#streams.list(id), ...this.#udp.list(id)];
  }

  ofRoute(id: string): UpgradedConnectionView[] {
    return this.#webSockets.list(id);
  }

  /** Closes a connection; false when it is not one of this worker. */
  kill(id: string): boolean {
    return this.#streams.kill(id) || this.#udp.kill(id) || this.#webSockets.kill(id);
  }

  /** Closes those of what a version no longer has; null: all WebSockets. */
  end(paths: EndedPaths | null): void {
    if (paths === null) return this.#webSockets.goAway();
    const routes = new Set(paths.routes);
    const targets = new Set(paths.targets);
    this.#webSockets.closeWhere((path) => routes.has(path.routeId) || targets.has(path.targetId));
    this.#streams.end(new Set(paths.streamRoutes));
  }
}
