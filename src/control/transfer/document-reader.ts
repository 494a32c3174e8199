// Reads configuration files: small ones in this thread, large ones in another, so that this one goes on answering.
import { openTables } from "../import/foreign-tables.ts";
import type { ReportEntry } from "../import/report.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { readInThread } from "./reader-thread.ts";
import { readDocument, type ReadTask } from "./reading.ts";
import type { ParseJson, SourceDocument } from "./source.ts";

/** A document that is being imported. */
export interface OpenDocument {
  readonly value: unknown;
  /** Objects in it that have passed their schema, and hold every field. */
  readonly decoded: WeakSet<object>;
  readonly report: readonly ReportEntry[] | null;
  readonly wasEncrypted: boolean;
  /** Line, from 1, of what the path leads to; null when it is not known. */
  readonly lineOf: (path: string) => Promise<number | null>;
}

export interface DocumentReaderOptions {
  readonly plugins: PluginCatalogue;
  /** Entry file of the thread; null: everything is read in this one. The caller forms it, as that of a worker. */
  readonly url: URL | null;
}

/** Longer ones are read in the thread; to start it takes a tenth of a second. */
const LARGE_BYTES = 1_048_576;

export class DocumentReader {
  readonly #options: DocumentReaderOptions;

  constructor(options: DocumentReaderOptions) {
    this.#options = options;
  }

  /** Throws a 400 for bytes that are no document. */
  async read(task: ReadTask, parseJson: ParseJson): Promise<OpenDocument> {
    const { url, plugins } = this.#options;
    if (url !== null && task.bytes.byteLength > LARGE_BYTES) return await readInThread(url, task);
    const { source, ...rest } = await readDocument(task, {
      plugins: () => plugins,
      parseJson,
      openTables,
    });
    return { ...opened(source), ...rest };
  }
}

/** What was read in this thread. */
export const opened = ({ value, lineOf }: SourceDocument): OpenDocument => ({
  value,
  decoded: new WeakSet(),
  report: null,
  wasEncrypted: false,
  lineOf: (path) => Promise.resolve(lineOf(path)),
});
