// A worker thread with the real loop and protocol around a data plane that fails as the name of a service specifies.
import type { DataPlane, DataPlaneOptions } from "../../../src/dataplane/data-plane.ts";
import { runWorkerLoop } from "../../../src/dataplane/worker-loop.ts";
import type { Issue } from "../../../src/model/error.ts";
import { sizeOf } from "../../../src/snapshot/pieces.ts";
import type { WorkerQuestion } from "../../../src/snapshot/message.ts";
import type { SnapshotChange, SnapshotPiece } from "../../../src/snapshot/snapshot.ts";
import { type Fault, readFault } from "./fault.ts";

declare const self: Worker;

/** Eleven of these are longer than the timeouts of the test that uses it. */
const SLOW_MS = 250;

/** Responds with `{worker, revision}` on every listener: what a client would get. */
class FaultyDataPlane implements DataPlane {
  useKeys(): void {}
  useManagement(): void {}

  readonly #options: DataPlaneOptions;
  #faults: readonly Fault[] = [];
  #prepared: SnapshotChange | null = null;
  #revision = 0;
  #isSlow = false;
  #servers: Bun.Server<undefined>[] = [];

  constructor(options: DataPlaneOptions) {
    this.#options = options;
  }

  async prepare(change: SnapshotChange): Promise<readonly Issue[]> {
    if (this.#prepared !== null) throw new Error("the last version was not discarded");
    if (change.base !== null && change.base !== this.#revision) throw new Error("wrong base");
    this.#faults = change.services.upserts
      .map(({ service }) => readFault(service.name))
      .filter((fault) => fault !== null)
      .filter((fault) => fault.worker === this.#options.worker);
    const issues = await this.#failAt(change.base === null ? "start" : "prepare");
    this.#prepared = change;
    for (const { listener } of change.listeners.upserts) this.#listen(listener.port);
    return issues;
  }

  async take(revision: number, piece: SnapshotPiece): Promise<void> {
    const { log, worker, board } = this.#options;
    log("info", "piece", { revision, objects: sizeOf(piece) });
    this.#faults = piece.services.upserts
      .map(({ service }) => readFault(service.name))
      .filter((fault) => fault?.worker === worker)
      .filter((fault) => fault !== null);
    this.#isSlow ||= this.#faults.some(({ kind }) => kind === "slow");
    await this.#failAt("take");
    if (!this.#isSlow) return;
    board.set = () => undefined;
    await Bun.sleep(SLOW_MS);
  }

  async activate(revision: number): Promise<void> {
    const change = this.#prepared;
    if (change?.revision !== revision) throw new Error(`revision ${revision} is not prepared`);
    if (change.base !== null) void this.#failAt("activate");
    this.#revision = revision;
    this.#prepared = null;
    if (change.base !== null) setTimeout(() => void this.#failAt("serve"), 1);
  }

  relieve(): void {}

  discard(revision: number): void {
    if (this.#prepared?.revision !== revision) return;
    this.#prepared = null;
    this.#options.log("info", "discarded", { revision });
  }

  answer({ kind }: WorkerQuestion): boolean {
    this.#options.log("info", "asked", { place: this.#options.worker, kind });
    return false;
  }

  async stopAccepting(): Promise<void> {}

  async drain(): Promise<number> {
    for (const server of this.#servers) await server.stop(true);
    return this.#options.worker + 1;
  }

  #listen(port: number): void {
    const { worker } = this.#options;
    this.#servers.push(
      Bun.serve({
        hostname: "127.0.0.1",
        port,
        reusePort: true,
        fetch: () =>
          Response.json(
            { worker, revision: this.#revision },
            { status: this.#revision === 0 ? 503 : 200, headers: { connection: "close" } },
          ),
      }),
    );
  }

  #failAt(place: Fault["place"]): Promise<readonly Issue[]> {
    const fault = this.#faults.find((one) => one.place === place);
    switch (fault?.kind) {
      case undefined:
        return Promise.resolve([]);
      case "reject":
        return Promise.resolve([{ path: "services", message: "refused", status: 400 }]);
      case "throw":
        throw new Error("thrown on demand");
      case "exit":
        return process.exit(7);
      case "wait":
        return new Promise(() => undefined);
      case "loop":
        // Busy for its clients, not for the machine.
        for (;;) Bun.sleepSync(10);
      case "slow":
        return Promise.resolve([]);
    }
  }
}

runWorkerLoop(self, (options) => new FaultyDataPlane(options), new Map());
