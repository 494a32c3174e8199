// Reads configuration files: small ones of JSON in this thread, all others in another, so that this one is not blocked.
import type { Position } from "../../model/json-position.ts";
import { openTables } from "../foreign-tables.ts";
import type { HostResult } from "../host-results.ts";
import type { ReportEntry } from "../report.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { readInThread } from "./reader-thread.ts";
import { readDocument, type ReadTask } from "./reading.ts";
import type { ParseJson, SourceDocument } from "./source.ts";

/** A configuration file to import. */
export interface OpenDocument {
  readonly value: unknown;
  /** Objects in it that have passed their schema, and have every field. */
  readonly decoded: WeakSet<object>;
  readonly report: readonly ReportEntry[] | null;
  /** Of a conversion: the result for every host. */
  readonly hosts: readonly HostResult[];
  readonly wasEncrypted: boolean;
  /** Where the path stands; null when unknown. */
  readonly positionOf: (path: string) => Promise<Position | null>;
}

export interface DocumentReaderOptions {
  readonly plugins: PluginCatalogue;
  /** Entry file of the thread; null: this thread reads all files. From the caller, as that of a worker. */
  readonly url: URL | null;
}

/** The thread, which takes 100 ms to start, reads longer ones: 40 ms of work here. */
const LARGE_BYTES = { json: 262_144, yaml: 65_536 } as const;

export class DocumentReader {
  readonly #options: DocumentReaderOptions;

  constructor(options: DocumentReaderOptions) {
    this.#options = options;
  }

  /** Throws a 400 for an invalid file. */
  async read(task: ReadTask, parseJson: ParseJson): Promise<OpenDocument> {
    const { url, plugins } = this.#options;
    const { bytes, form } = task;
    // The regular expressions of another program's configuration take long, whatever its size.
    const isLarge = "from" in form || bytes.byteLength > LARGE_BYTES[form.type];
    if (url !== null && isLarge) return await readInThread(url, task);
    const { source, ...rest } = await readDocument(task, {
      plugins: () => plugins,
      parseJson,
      openTables,
    });
    return { ...opened(source), ...rest };
  }
}

/** A configuration file from this thread. */
export const opened = ({ value, positionOf }: SourceDocument): OpenDocument => ({
  value,
  decoded: new WeakSet(),
  report: null,
  hosts: [],
  wasEncrypted: false,
  positionOf,
});
