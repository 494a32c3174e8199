// Records in shared memory while threads read them: every version reads as committed, whatever is written meanwhile.
import { expect, test } from "bun:test";
import type { RecordTable } from "../../../src/shared-memory/record-reader.ts";
import { RecordWriter } from "../../../src/shared-memory/record-writer.ts";
import { KEYS, type ReadingResult, type ReadingTask } from "./record-thread.ts";

const THREADS = 2;

/** Each record of the committed version gets the number of the next one. */
function write(writer: RecordWriter, number: number): RecordTable {
  writer.begin(KEYS);
  const { version } = writer.table;
  for (let key = 0; key < KEYS; key++) {
    const { reader } = writer;
    const old = reader.find(`key ${key}`, version, (record) =>
      reader.text(record).startsWith(`${key} `),
    );
    if (old !== 0) writer.retire(old);
    writer.add([`key ${key}`, `number ${number} ${key}`], `${key} ${number}`);
  }
  return writer.next;
}

function startReader() {
  const worker = new Worker(new URL("./record-thread.ts", import.meta.url).href);
  let isBusy = false;
  let tell: (result: ReadingResult) => void = () => {};
  worker.onmessage = ({ data }: MessageEvent<ReadingResult | number>) => {
    isBusy = false;
    if (typeof data !== "number") tell(data);
  };
  return {
    /** Reads this version, unless it is still reading another one. */
    read(task: ReadingTask) {
      if (isBusy) return;
      isBusy = true;
      worker.postMessage(task);
    },
    async end(): Promise<ReadingResult> {
      const { promise, resolve } = Promise.withResolvers<ReadingResult>();
      tell = resolve;
      worker.postMessage(null);
      const result = await promise;
      worker.terminate();
      return result;
    },
  };
}

test("threads read their version while later ones are written", async () => {
  const writer = new RecordWriter();
  const readers = Array.from({ length: THREADS }, startReader);
  write(writer, 0);
  writer.commit();
  const epochs = new Set<number>();
  for (let number = 1; number <= 1_500; number++) {
    const table = writer.table;
    for (const reader of readers) reader.read({ table, expected: number - 1 });
    write(writer, -number);
    writer.rollback();
    write(writer, number);
    writer.commit();
    epochs.add(writer.table.epoch);
    // Lets messages of the threads arrive.
    if (number % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  for (const reader of readers) {
    const { reads, wrong } = await reader.end();
    expect(wrong).toEqual([]);
    expect(reads).toBeGreaterThan(KEYS);
  }
  expect(epochs.size).toBeGreaterThan(3);
});

test("a rollback removes its records from every version and restores those that it retired", () => {
  const writer = new RecordWriter();
  write(writer, 1);
  writer.commit();
  const kept = writer.table;
  const undone = write(writer, 2);
  writer.rollback();
  const any = () => true;
  const textOf = (version: number) => {
    const found = writer.reader.find("key 7", version, any);
    return found === 0 ? null : writer.reader.text(found);
  };
  expect(textOf(kept.version)).toBe("7 1");
  expect(writer.reader.find("number 2 7", undone.version, any)).toBe(0);
  write(writer, 3);
  expect(textOf(kept.version)).toBe("7 1");
  expect(textOf(writer.next.version)).toBe("7 3");
  expect(writer.reader.find("number 2 7", writer.next.version, any)).toBe(0);
});
