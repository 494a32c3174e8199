// Serializes a large change before the transaction, which blocks the thread; knows no table.
import type { Identity } from "../model/fields.ts";
import { collectionNames, type ConfigChange, singletonNames } from "../model/gateway-config.ts";
import type { Pace, Steps } from "../pace.ts";
import { documentOf } from "./collection.ts";

/** A change of more objects than these is large. */
const LARGE_CHANGE = 500;
/** Characters per compressed chunk: compressing the whole text would need most of the memory of a large change. */
const CHUNK = 1_048_576;

export interface StagedChange {
  /** The documents of the objects that the change writes. */
  readonly documents: ReadonlyMap<Identity, string>;
  /** The change for the table of revisions, as JSON. */
  readonly revision: string;
}

/** A compressed change in the table of revisions: its parts, and the content in base64. */
interface PackedChange {
  readonly [part: string]: unknown;
  readonly zstd: string;
}

/** Serializes a large change in slices; null: the change is small. */
export async function stageChange(
  change: ConfigChange,
  undo: ConfigChange,
  pace: Pace,
): Promise<StagedChange | null> {
  if (sizeOf(change) <= LARGE_CHANGE) return null;
  const documents = new Map<Identity, string>();
  const isSealed = await pace.run(documentSteps([change, undo], documents));
  // Changes with encrypted values are not compressed: a key rotation must find the values.
  const text = textOf(change, undo, documents);
  const revision = isSealed ? [...text].join("") : await packed(change, text, pace);
  return { documents, revision };
}

/** Decompresses a stored change if needed. */
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

/** Returns whether the change contains an encrypted value. */
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

/** Yields the JSON of `toStoredChange` in pieces; only the order of members differs. */
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

/** Omits unchanged parts. Returns whether there is a member. */
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

/** Compresses chunks separately, to about a fiftieth of the text. Decompression reads the whole at once. */
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
