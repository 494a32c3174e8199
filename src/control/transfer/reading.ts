// From the bytes of a document to what is imported: parsed, converted, decrypted, and as far as can be, decoded. Knows no thread.
import { decryptUnder, PassphraseError } from "../../crypto/passphrase-box.ts";
import { decode } from "../../model/decode.ts";
import { ApiError } from "../../model/error.ts";
import { encryptedDocument } from "../../model/export-document.ts";
import type { CollectionName } from "../../model/gateway-config.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { decodeRecord } from "../../store/records.ts";
import { isDocument } from "../body.ts";
import { convert, type ImportSource } from "../import/convert.ts";
import type { OpenTables } from "../import/npm/tables.ts";
import type { ReportEntry } from "../import/report.ts";
import { holdsSecrets } from "./secret-material.ts";
import {
  decodeText,
  type DocumentType,
  findLine,
  type ParseJson,
  readSource,
  type SourceDocument,
  withoutLines,
} from "./source.ts";

/** A document of ours, or the configuration of another program. */
export type DocumentForm = { readonly type: DocumentType } | { readonly from: ImportSource };

export interface ReadTask {
  readonly bytes: Uint8Array;
  readonly form: DocumentForm;
  /** Of a document that is encrypted as a whole; null: none was given. */
  readonly passphrase: string | null;
}

/** What belongs to other rooms and is handed in. */
export interface ReadContext {
  /** Asked for only when another program's configuration is converted: a thread may have to load them. */
  readonly plugins: () => PluginCatalogue | Promise<PluginCatalogue>;
  readonly parseJson: ParseJson;
  readonly openTables: OpenTables;
}

export interface ReadDocument {
  readonly source: SourceDocument;
  /** What became of another program's configuration; null: it is a document of ours. */
  readonly report: readonly ReportEntry[] | null;
  /** Whether it was encrypted as a whole, so that it may hold what no other document may. */
  readonly wasEncrypted: boolean;
}

/** Throws a 400 for bytes that are no document. */
export async function readDocument(
  { bytes, form, passphrase }: ReadTask,
  context: ReadContext,
): Promise<ReadDocument> {
  if ("from" in form) {
    const plugins = await context.plugins();
    const { document, report } = await convert(form.from, bytes, { ...context, plugins });
    return { source: withoutLines(document), report, wasEncrypted: false };
  }
  const source = readSource(decodeText(bytes), form.type, context.parseJson);
  const { value } = source;
  if (!isDocument(value) || !("encrypted" in value))
    return { source, report: null, wasEncrypted: false };
  const inner = await decryptDocument(value, passphrase);
  return { source: withoutLines(inner), report: null, wasEncrypted: true };
}

/** Line, from 1, of what the path leads to in a document of ours that could be read; null: it is none of ours. */
export const lineIn = ({ bytes, form }: ReadTask, path: string): number | null =>
  "type" in form ? findLine(decodeText(bytes), form.type, path) : null;

async function decryptDocument(value: unknown, passphrase: string | null): Promise<unknown> {
  const { encrypted } = decode(encryptedDocument, value);
  try {
    return JSON.parse(await decryptUnder(checkPassphrase(passphrase), encrypted));
  } catch (error) {
    if (error instanceof PassphraseError) throw new ApiError(400, error.message, { cause: error });
    throw error;
  }
}

const MIN_PASSPHRASE = 12;
const MAX_PASSPHRASE = 1024;

export function checkPassphrase(passphrase: string | null): string {
  const text = passphrase ?? "";
  if (text.length >= MIN_PASSPHRASE && text.length <= MAX_PASSPHRASE) return text;
  throw new ApiError(
    400,
    `X-Passphrase: must hold a passphrase of ${MIN_PASSPHRASE} to ${MAX_PASSPHRASE} characters`,
  );
}

/** Collections that may be large. What the import does with their objects is the same with every default filled in. */
export const DECODED_EARLY = [
  "services",
  "targets",
  "routes",
  "stream_routes",
  "consumers",
  "plugins",
] as const satisfies readonly CollectionName[];

/**
 * The object with its fields as they are stored. Null for one that holds secrets, which are sealed first, and for one that is
 * not right: what is wrong is said in its turn.
 */
export function decodeEarly(
  collection: (typeof DECODED_EARLY)[number],
  value: unknown,
): Readonly<Record<string, unknown>> | null {
  if (!isDocument(value) || holdsSecrets(value)) return null;
  const { id, created_at, updated_at, ...fields } = value;
  try {
    return { id, created_at, updated_at, ...decodeRecord[collection](fields) };
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
