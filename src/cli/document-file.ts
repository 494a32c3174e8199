// Reads a configuration file, sends it to the management API and describes the changes; knows no object.
import { parseJson } from "../api/json-body.ts";
import type { ObjectDifference } from "../control/differences.ts";
import { type DocumentType, readSource, type SourceDocument } from "../import/transfer/source.ts";
import type { ReportEntry } from "../import/report.ts";
import { ApiError } from "../model/error.ts";
import { type CallManagement, CommandError, readText } from "./management-client.ts";

export interface DocumentFile {
  readonly text: string;
  readonly type: DocumentType;
}

/** Standard input and files without a known ending are JSON when they begin like it. */
export function readDocument(path: string): DocumentFile {
  const text = readText(path);
  return { text, type: typeOf(path, text) };
}

export function typeOf(path: string, text: string): DocumentType {
  if (/\.ya?ml$/i.test(path)) return "yaml";
  if (/\.json$/i.test(path)) return "json";
  return text.trimStart().startsWith("{") ? "json" : "yaml";
}

/** The same, parsed; throws a CommandError for what is neither YAML nor JSON. */
export const readFileSource = (path: string): Promise<SourceDocument> =>
  parseDocument(path, readText(path));

/** The same for the text of the file. */
export async function parseDocument(path: string, text: string): Promise<SourceDocument> {
  try {
    return await readSource(text, typeOf(path, text), parseJson);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new CommandError(`${path}: ${error.message}`, { cause: error });
  }
}

export interface Sending {
  readonly mode: "merge" | "replace";
  readonly dryRun: boolean;
  readonly force: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the file was converted from another program. Default: false. */
  readonly isConverted?: boolean;
}

export interface SentDocument {
  /** What the gateway changed, or would change. */
  readonly changes: readonly ObjectDifference[];
  /** Of a converted file: what this gateway cannot have as it was. */
  readonly report: readonly ReportEntry[];
}

export async function sendDocument(
  call: CallManagement,
  { text, type }: DocumentFile,
  { mode, dryRun, force, headers, isConverted = false }: Sending,
): Promise<SentDocument> {
  const converted = isConverted ? "&converted=1" : "";
  const answer = await call({
    method: "POST",
    path: `/import?mode=${mode}&dry_run=${dryRun ? 1 : 0}&force=${force ? 1 : 0}${converted}`,
    headers: { ...headers, "content-type": `application/${type}` },
    body: text,
    // A converted file has a report.
    warns: !isConverted,
  });
  const { changes, report = [] } = JSON.parse(answer) as Partial<SentDocument> &
    Pick<SentDocument, "changes">;
  return { changes, report };
}

const SIGNS = { create: "+", update: "~", delete: "-" } as const;

/** One line for each object, and below it one for each field that changes. */
export function describeChanges(changes: readonly ObjectDifference[]): string {
  const lines = changes.flatMap(({ action, kind, id, name, diff }) => [
    `${SIGNS[action]} ${kind.replaceAll("_", " ")}${name === null && id === null ? "" : ` ${JSON.stringify(name ?? id)}`}`,
    ...(action === "update"
      ? diff.map(({ path, before, after }) => `    ${path}: ${shown(before)} -> ${shown(after)}`)
      : []),
  ]);
  return `${lines.map((line) => `${line}\n`).join("")}${countChanges(changes)}`;
}

/** One line for all of them. */
export function countChanges(changes: readonly ObjectDifference[]): string {
  const count = (action: string) => changes.filter((change) => change.action === action).length;
  return changes.length === 0
    ? "no changes\n"
    : `${count("create")} created, ${count("update")} updated, ${count("delete")} deleted\n`;
}

const shown = (value: unknown) => JSON.stringify(value) ?? "null";
