// The open connections of stream routes, and those of routes that were upgraded, from all workers; knows no HTTP.
import { ApiError, noWorker } from "../model/error.ts";
import type {
  StreamConnectionView,
  UpgradedConnectionView,
  WorkerAnswer,
  WorkerQuestion,
} from "../snapshot/message.ts";
import type { AuditSink } from "./audit-entry.ts";
import type { Changes } from "./change.ts";
import { findByKey } from "./key.ts";
import type { Actor } from "./principal.ts";

/** Asks every serving worker; skips workers that do not respond. */
export type AskWorkers = (question: WorkerQuestion) => Promise<readonly WorkerAnswer[]>;

export class Connections {
  readonly #changes: Changes;
  readonly #audit: AuditSink;
  readonly #ask: AskWorkers;

  constructor(parts: { readonly changes: Changes; readonly audit: AuditSink }, ask: AskWorkers) {
    this.#changes = parts.changes;
    this.#audit = parts.audit;
    this.#ask = ask;
  }

  /** Connections of one stream route, oldest first. */
  ofStreamRoute(key: string): Promise<readonly StreamConnectionView[]> {
    const route = findByKey(this.#changes.config.stream_routes, key);
    if (route === null) throw new ApiError(404, `stream route "${key}" does not exist`);
    return this.#list<StreamConnectionView>({ kind: "connections", streamRouteId: route.id });
  }

  /** WebSockets and other upgraded connections of one route, oldest first. */
  ofRoute(key: string): Promise<readonly UpgradedConnectionView[]> {
    const route = findByKey(this.#changes.config.routes, key);
    if (route === null) throw new ApiError(404, `route "${key}" does not exist`);
    return this.#list<UpgradedConnectionView>({ kind: "upgrades", routeId: route.id });
  }

  async #list<T extends { readonly started_at: string }>(
    question: WorkerQuestion,
  ): Promise<readonly T[]> {
    const answers = await this.#ask(question);
    if (answers.length === 0) throw noWorker();
    const connections = answers.flatMap((answer) =>
      Array.isArray(answer) ? (answer as unknown as readonly T[]) : [],
    );
    return connections.toSorted((a, b) => (a.started_at < b.started_at ? -1 : 1));
  }

  /** Closes a connection; throws a 404 when none has this id. */
  async kill(id: string, { actor, method, address }: Actor): Promise<void> {
    const answers = await this.#ask({ kind: "kill", connectionId: id });
    if (answers.length === 0) throw noWorker();
    if (!answers.includes(true)) throw new ApiError(404, `connection "${id}" does not exist`);
    this.#audit.record({
      actor,
      method,
      address,
      action: "delete",
      kind: "connection",
      object_id: id,
      object_name: null,
      result: "ok",
      revision: null,
      detail: null,
    });
  }
}
