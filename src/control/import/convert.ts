// Turns the configuration of another program into a document to import; a folder for each program knows that program.
import { ApiError } from "../../model/error.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import type { ParseJson } from "../transfer/source.ts";
import { convertCaddy } from "./caddy/caddy.ts";
import { convertKong } from "./kong/kong.ts";
import type { OpenTables } from "./npm/tables.ts";
import { convertNpm } from "./npm/npm.ts";
import { Output } from "./output.ts";
import { Report, type ReportEntry } from "./report.ts";
import { dropInvalid } from "./drop-invalid.ts";

/** Programs whose configuration can be carried over. */
export const importSources = ["kong", "caddy", "npm"] as const;
export type ImportSource = (typeof importSources)[number];

export interface Conversion {
  /** To be imported as it is. */
  readonly document: unknown;
  /** What became of everything in the source, the gravest first. */
  readonly report: readonly ReportEntry[];
}

/** What belongs to other rooms and is handed in. */
export interface ConversionContext {
  /** Plugins of the gateway that the document is for. */
  readonly plugins: PluginCatalogue;
  readonly parseJson: ParseJson;
  /** Reads a database in memory. */
  readonly openTables: OpenTables;
}

/** Of what is read; a gateway with ten thousand routes takes a tenth of it. */
export const MAX_SOURCE_BYTES = 33_554_432;

/** Throws a 400 for bytes that are no such configuration. */
export async function convert(
  from: ImportSource,
  bytes: Uint8Array,
  context: ConversionContext,
): Promise<Conversion> {
  if (bytes.byteLength > MAX_SOURCE_BYTES)
    throw new ApiError(413, `the configuration is larger than ${MAX_SOURCE_BYTES} bytes`);
  const report = new Report();
  const output = new Output(from, report, context.plugins);
  switch (from) {
    case "kong":
      await convertKong(bytes, output, context);
      break;
    case "caddy":
      await convertCaddy(bytes, output, context);
      break;
    case "npm":
      await convertNpm(bytes, output, context);
      break;
    default:
      from satisfies never;
  }
  const document = dropInvalid(output);
  return { document, report: report.finish() };
}
