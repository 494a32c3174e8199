// Lists and closes the open connections of stream routes in all workers; no HTTP words.
import { ApiError } from "../model/error.ts";
import type { StreamConnectionView, WorkerAnswer, WorkerQuestion } from "../snapshot/message.ts";
import type { AuditSink } from "./audit-entry.ts";
import type { Changes } from "./change.ts";
import { findByKey } from "./key.ts";
import type { Actor } from "./principal.ts";

/** Asks every serving worker; skips one that does not answer. */
export type AskWorkers = (question: WorkerQuestion) => Promise<readonly WorkerAnswer[]>;

export class StreamConnections {
  readonly #changes: Changes;
  readonly #audit: AuditSink;
  readonly #ask: AskWorkers;

  constructor(parts: { readonly changes: Changes; readonly audit: AuditSink }, ask: AskWorkers) {
    this.#changes = parts.changes;
    this.#audit = parts.audit;
    this.#ask = ask;
  }

  /** Of one stream route, oldest first. */
  async list(key: string): Promise<readonly StreamConnectionView[]> {
    const route = findByKey(this.#changes.config.stream_routes, key);
    if (route === null) throw new ApiError(404, `stream route "${key}" does not exist`);
    const answers = await this.#ask({ kind: "connections", streamRouteId: route.id });
    const connections = answers.flatMap((answer) =>
      Array.isArray(answer) ? (answer as readonly StreamConnectionView[]) : [],
    );
    return connections.toSorted((a, b) => (a.started_at < b.started_at ? -1 : 1));
  }

  /** Closes a connection; throws a 404 when it does not exist. */
  async kill(id: string, { actor, method, address }: Actor): Promise<void> {
    const answers = await this.#ask({ kind: "kill", connectionId: id });
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
