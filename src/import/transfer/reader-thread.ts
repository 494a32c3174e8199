// Both ends of the thread that reads large configuration files and returns objects in pieces; knows no format.
import type { Position } from "../../model/json-position.ts";
import { compact, type Defaults, expand } from "../../model/compact.ts";
import { defaultsOf } from "../../model/decode.ts";
import { ApiError, type ApiStatus } from "../../model/error.ts";
import { recordSchemas } from "../../model/records.ts";
import { allVerdicts, learn, limitChecks, REGEX_BUDGET_MS } from "../../snapshot/regex-safety.ts";
import type { HostResult } from "../host-results.ts";
import type { ReportEntry } from "../report.ts";
import type { OpenDocument } from "./document-reader.ts";
import { DECODED_EARLY, decodeEarly } from "./decoded-early.ts";
import { positionIn, type ReadContext, readDocument, type ReadTask } from "./reading.ts";
import { isDocument } from "../../control/body.ts";

/** Objects in one message. */
const PIECE_OBJECTS = 500;

type ReaderCommand =
  | {
      readonly kind: "read";
      readonly task: ReadTask;
      /** Regular expressions that have been checked. */
      readonly verdicts: Verdicts;
    }
  /** Find this path. */
  | { readonly kind: "position"; readonly task: ReadTask; readonly path: string };

type Verdicts = ReturnType<typeof allVerdicts>;

type ReaderEvent =
  | { readonly kind: "checked"; readonly verdicts: Verdicts }
  /** The next objects of a collection, as JSON: parsing it is cheaper for the receiver than a structured clone. */
  | {
      readonly kind: "objects";
      readonly collection: (typeof DECODED_EARLY)[number];
      readonly json: string;
      /** Indexes of objects that have not passed their schema. */
      readonly raw: readonly number[];
    }
  /** The rest of the file, as JSON, in which the sent collections are empty. */
  | {
      readonly kind: "read";
      readonly json: string;
      readonly report: readonly ReportEntry[] | null;
      readonly hosts: readonly HostResult[];
      readonly wasEncrypted: boolean;
    }
  | {
      readonly kind: "refused";
      readonly status: ApiStatus;
      readonly message: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: "position"; readonly position: Position | null };

/** The thread's end of the channel. */
export interface ReaderScope {
  postMessage(event: ReaderEvent): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ReaderCommand>) => void): void;
}

/** Responds to one command; then the caller ends the thread. */
export function serveReader(scope: ReaderScope, context: ReadContext): void {
  const answer = async (command: ReaderCommand): Promise<ReaderEvent> => {
    const { task } = command;
    if (command.kind === "position")
      return { kind: "position", position: await positionIn(task, command.path) };
    learnAll(command.verdicts);
    limitChecks(REGEX_BUDGET_MS);
    try {
      const { source, report, hosts, wasEncrypted } = await readDocument(task, context);
      const rest = sendObjects(source.value, scope);
      return { kind: "read", json: JSON.stringify(rest), report, hosts, wasEncrypted };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { status, message, headers } = error;
      return { kind: "refused", status, message, headers };
    } finally {
      // Also when there were too many, so that the next attempt goes on from there.
      scope.postMessage({ kind: "checked", verdicts: "from" in task.form ? allVerdicts() : [] });
    }
  };
  scope.addEventListener("message", ({ data }) => {
    // Not caught: an internal error ends the thread.
    void answer(data).then((event) => scope.postMessage(event));
  });
}

const learnAll = (verdicts: Verdicts): void => {
  for (const [source, problem] of verdicts) learn(source, { problem, isFinal: true });
};

/** Sends the objects of large collections; returns the rest. */
function sendObjects(document: unknown, scope: ReaderScope): unknown {
  if (!isDocument(document)) return document;
  const rest: Record<string, unknown> = { ...document };
  for (const collection of DECODED_EARLY) {
    const list = document[collection];
    if (!Array.isArray(list)) continue;
    rest[collection] = [];
    const defaults = defaultsOf(recordSchemas[collection]);
    for (let at = 0; at < list.length; at += PIECE_OBJECTS) {
      const raw: number[] = [];
      const objects = list.slice(at, at + PIECE_OBJECTS).map((value: unknown, index) => {
        const decoded = decodeEarly(collection, value);
        if (decoded === null) raw.push(index);
        return decoded === null ? value : compact(decoded, defaults);
      });
      scope.postMessage({ kind: "objects", collection, json: JSON.stringify(objects), raw });
    }
  }
  return rest;
}

/** Reads a file in a thread. Throws the error of the thread. */
export async function readInThread(url: URL, task: ReadTask): Promise<OpenDocument> {
  const received = new ReceivedObjects();
  const verdicts = "from" in task.form ? allVerdicts() : [];
  const event = await ask(url, { kind: "read", task, verdicts }, (objects) =>
    received.add(objects),
  );
  if (event.kind === "refused")
    throw new ApiError(event.status, event.message, { headers: event.headers });
  if (event.kind !== "read") throw new Error(`unexpected response ${event.kind}`);
  const { json, report, hosts, wasEncrypted } = event;
  const value = JSON.parse(json) as unknown;
  if (isDocument(value)) Object.assign(value, received.lists());
  return {
    value,
    report,
    hosts,
    wasEncrypted,
    decoded: received.decoded,
    // Rare, and holding the file would cost the thread much memory: another thread reads it again.
    positionOf: async (path) => {
      if (wasEncrypted || "from" in task.form) return null;
      const answer = await ask(url, { kind: "position", task, path }, () => {});
      return answer.kind === "position" ? answer.position : null;
    },
  };
}

type ObjectsEvent = Extract<ReaderEvent, { readonly kind: "objects" }>;

/** Starts a thread for one command and ends it after the response. */
function ask(
  url: URL,
  command: ReaderCommand,
  onObjects: (event: ObjectsEvent) => void,
): Promise<ReaderEvent> {
  const { promise, resolve, reject } = Promise.withResolvers<ReaderEvent>();
  const worker = new Worker(url);
  worker.addEventListener("message", ({ data }: MessageEvent<ReaderEvent>) => {
    if (data.kind === "objects") onObjects(data);
    else if (data.kind === "checked") learnAll(data.verdicts);
    else resolve(data);
  });
  worker.addEventListener("error", (event: ErrorEvent) => {
    event.preventDefault();
    reject(new Error(`the configuration file could not be read: ${event.message}`));
  });
  worker.addEventListener("close", () =>
    reject(new Error("the thread that reads configuration files has ended")),
  );
  worker.postMessage(command);
  return promise.finally(() => worker.terminate());
}

/** The objects that the thread has sent. */
class ReceivedObjects {
  readonly decoded = new WeakSet<object>();
  readonly #lists = new Map<string, unknown[]>();
  readonly #defaults = new Map<string, Defaults>();

  add({ collection, json, raw }: ObjectsEvent): void {
    const list = this.#lists.get(collection) ?? [];
    this.#lists.set(collection, list);
    const defaults = this.#defaults.get(collection) ?? defaultsOf(recordSchemas[collection]);
    this.#defaults.set(collection, defaults);
    const isRaw = new Set(raw);
    for (const [index, value] of (JSON.parse(json) as unknown[]).entries()) {
      if (isRaw.has(index)) {
        list.push(value);
        continue;
      }
      const object = expand(value as object, defaults);
      this.decoded.add(object);
      list.push(object);
    }
  }

  lists(): Readonly<Record<string, unknown[]>> {
    return Object.fromEntries(this.#lists);
  }
}
