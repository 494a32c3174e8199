// A large change as the texts that the store writes, made before the transaction, which holds the thread; knows no table.
import type { Identity } from "../model/fields.ts";
import { collectionNames, type ConfigChange, singletonNames } from "../model/gateway-config.ts";
import type { Pace, Steps } from "../pace.ts";
import { documentOf } from "./collection.ts";

/** A change of more objects than these is large. */
const LARGE_CHANGE = 500;
/** Characters that are packed at a time: all of the text at once would be most of the memory that a large change takes. */
const CHUNK = 1_048_576;

export interface StagedChange {
  /** The documents of the objects that the change writes. */
  readonly documents: ReadonlyMap<Identity, string>;
  /** What the history keeps of it, as JSON. */
  readonly revision: string;
}

/** What stands in the history for a change that was packed: which parts it touched, and all of it in base64. */
interface PackedChange {
  readonly [part: string]: unknown;
  readonly zstd: string;
}

/** Makes the texts of a large change, in slices; null: the change is small. */
export async function stageChange(
  change: ConfigChange,
  undo: ConfigChange,
  pace: Pace,
): Promise<StagedChange | null> {
  if (sizeOf(change) <= LARGE_CHANGE) return null;
  const documents = new Map<Identity, string>();
  const isSealed = await pace.run(documentSteps([change, undo], documents));
  // Values that are encrypted stay readable: another key has to find them.
  const text = textOf(change, undo, documents);
  const revision = isSealed ? [...text].join("") : await packed(change, text, pace);
  return { documents, revision };
}

/** A stored change as it was before it was packed, if it was. */
export function unpack(stored: unknown): unknown {
  const { zstd } = stored as Partial<PackedChange>;
  if (zstd === undefined) return stored;
  const bytes = Bun.zstdDecompressSync(Buffer.from(zstd, "base64"));
  return JSON.parse(new TextDecoder().decode(bytes));
}

const sizeOf = (change: ConfigChange): number =>
  collectionNames.reduce(
    (size, name) => size + change[name].upserts.length + change[name].removals.length,
    0,
  );

const SEALED = '"sealed:1:';

/** Returns whether something in it is encrypted. */
function* documentSteps(
  changes: readonly ConfigChange[],
  documents: Map<Identity, string>,
): Steps<boolean> {
  let isSealed = false;
  for (const change of changes) {
    for (const name of collectionNames)
      for (const object of change[name].upserts) {
        const document = documentOf(object);
        isSealed ||= document.includes(SEALED);
        documents.set(object, document);
        yield;
      }
    for (const name of singletonNames) isSealed ||= JSON.stringify(change[name]).includes(SEALED);
  }
  return isSealed;
}

/** The text of `toStoredChange`, but for the order of members, bit by bit. */
function* textOf(
  change: ConfigChange,
  undo: ConfigChange,
  documents: ReadonlyMap<Identity, string>,
): Generator<string> {
  yield "{";
  const isAny = yield* membersOf(change, documents);
  yield isAny ? ',"undo":{' : '"undo":{';
  yield* membersOf(undo, documents);
  yield "}}";
}

/** What is not touched is missing. Returns whether there is any member. */
function* membersOf(
  change: ConfigChange,
  documents: ReadonlyMap<Identity, string>,
): Generator<string, boolean> {
  let separator = "";
  for (const name of collectionNames) {
    const { upserts, removals } = change[name];
    if (upserts.length + removals.length === 0) continue;
    yield `${separator}"${name}":{"upserts":[`;
    let between = "";
    for (const object of upserts as readonly Identity[]) {
      yield between + withIdentity(object, documents.get(object) ?? documentOf(object));
      between = ",";
    }
    yield `],"removals":${JSON.stringify(removals)}}`;
    separator = ",";
  }
  for (const name of singletonNames) {
    if (change[name] === null) continue;
    yield `${separator}"${name}":${JSON.stringify(change[name])}`;
    separator = ",";
  }
  return separator !== "";
}

function withIdentity({ id, created_at, updated_at }: Identity, document: string): string {
  const identity = JSON.stringify({ id, created_at, updated_at });
  return document === "{}" ? identity : `${identity.slice(0, -1)},${document.slice(1)}`;
}

/** A fiftieth of the text. Each chunk is packed by itself; the whole is unpacked at once. */
async function packed(change: ConfigChange, text: Iterable<string>, pace: Pace): Promise<string> {
  const chunks: Uint8Array[] = [];
  let chunk = "";
  for (const part of text) {
    chunk += part;
    if (chunk.length >= CHUNK) {
      chunks.push(await Bun.zstdCompress(chunk));
      chunk = "";
    } else if (pace.isDue()) await pace.rest();
  }
  chunks.push(await Bun.zstdCompress(chunk));
  const touched = [
    ...collectionNames.filter((name) => change[name].upserts.length + change[name].removals.length),
    ...singletonNames.filter((name) => change[name] !== null),
  ];
  const result: PackedChange = {
    ...Object.fromEntries(touched.map((name) => [name, true])),
    zstd: Buffer.concat(chunks).toString("base64"),
  };
  return JSON.stringify(result);
}
