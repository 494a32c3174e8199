// Reads a configuration file: parses, converts and decrypts it. Knows no thread.
import type { Position } from "../../model/json-position.ts";
import { decryptUnder, PassphraseError } from "../../crypto/passphrase-box.ts";
import { decode } from "../../model/decode.ts";
import { ApiError } from "../../model/error.ts";
import { encryptedDocument } from "../../model/export-document.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import { isDocument } from "../../control/body.ts";
import type { ImportChoice } from "../programs.ts";
import { filesOfForm, isForm } from "../set-up/form.ts";
import type { OpenTables } from "../npm/tables.ts";
import type { HostResult } from "../host-results.ts";
import type { ReportEntry } from "../report.ts";
import {
  decodeText,
  type DocumentType,
  positionsIn,
  type ParseJson,
  readSource,
  type SourceDocument,
  withoutText,
} from "./source.ts";

/** A configuration file of the gateway, or of another program. */
export type DocumentForm =
  | { readonly type: DocumentType }
  | {
      readonly from: ImportChoice;
      /** Content type of the body: a form has several files. */
      readonly contentType: string;
      /** Whether the user agrees to the terms of the CAs that the source uses. */
      readonly agreesTerms: boolean;
    };

export interface ReadTask {
  readonly bytes: Uint8Array;
  readonly form: DocumentForm;
  /** For an encrypted export; null: none was given. */
  readonly passphrase: string | null;
}

/** Functions that other rooms provide. */
export interface ReadContext {
  /** Called only to convert the configuration of another program: a thread may have to load them. */
  readonly plugins: () => PluginCatalogue | Promise<PluginCatalogue>;
  readonly parseJson: ParseJson;
  readonly openTables: OpenTables;
}

export interface ReadDocument {
  readonly source: SourceDocument;
  /** Report of the conversion from another program; null: it is a file of the gateway. */
  readonly report: readonly ReportEntry[] | null;
  /** Its result for every host. */
  readonly hosts: readonly HostResult[];
  /** Whether it was an encrypted export, which may contain parts that no other file may. */
  readonly wasEncrypted: boolean;
}

/** Throws a 400 for an invalid file. */
export async function readDocument(
  { bytes, form, passphrase }: ReadTask,
  context: ReadContext,
): Promise<ReadDocument> {
  if ("from" in form) {
    const plugins = await context.plugins();
    // Loaded only when it is asked for.
    const { convert } = await import("../convert.ts");
    const { from, agreesTerms, contentType } = form;
    const files = isForm(contentType) ? await filesOfForm(bytes, contentType) : bytes;
    const converted = await convert(from, files, { ...context, plugins, agreesTerms });
    const { document, report, hosts } = converted;
    return { source: withoutText(document), report, hosts, wasEncrypted: false };
  }
  const source = await readSource(decodeText(bytes), form.type, context.parseJson);
  const { value } = source;
  if (!isDocument(value) || !("encrypted" in value))
    return { source, report: null, hosts: [], wasEncrypted: false };
  const inner = await decryptDocument(value, passphrase);
  return { source: withoutText(inner), report: null, hosts: [], wasEncrypted: true };
}

/** Where the path stands in a valid file of the gateway; null: another program's file. */
export const positionIn = async (
  { bytes, form }: ReadTask,
  path: string,
): Promise<Position | null> =>
  "type" in form ? await positionsIn(decodeText(bytes), form.type)(path) : null;

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
    `X-Passphrase: must be a passphrase of ${MIN_PASSPHRASE} to ${MAX_PASSPHRASE} characters`,
  );
}
