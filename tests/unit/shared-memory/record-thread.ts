// A thread that reads one version after the other as fast as it can; run by record-writer.test.ts.
import { RecordReader, type RecordTable } from "../../../src/shared-memory/record-reader.ts";

declare const self: Worker;

/** Read this version until the next message; null: report the result. */
export type ReadingTask = { readonly table: RecordTable; readonly expected: number } | null;

export interface ReadingResult {
  readonly reads: number;
  readonly wrong: readonly string[];
}

/** Keys that every version has. */
export const KEYS = 50;

let reads = 0;
const wrong: string[] = [];

self.onmessage = ({ data }: MessageEvent<ReadingTask>) => {
  if (data === null) {
    self.postMessage({ reads, wrong } satisfies ReadingResult);
    return;
  }
  const reader = new RecordReader(data.table.buffer!);
  // In every version each record holds the number of that version.
  for (let round = 0; round < 20; round++)
    for (let key = 0; key < KEYS; key++) {
      const found = reader.find(`key ${key}`, data.table.version, (record) =>
        reader.text(record).startsWith(`${key} `),
      );
      const text = found === 0 ? "nothing" : reader.text(found);
      reads++;
      if (text !== `${key} ${data.expected}`) wrong.push(`${key}: ${text}, not ${data.expected}`);
    }
  self.postMessage(data.expected);
};
