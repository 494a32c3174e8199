// Converts the configuration of another program to a configuration file to import; one folder per program.
import { ApiError } from "../model/error.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { ParseJson } from "./transfer/source.ts";
import { convertCaddy } from "./caddy/caddy.ts";
import { convertCompose } from "./compose/compose.ts";
import { convertKong } from "./kong/kong.ts";
import type { OpenTables } from "./npm/tables.ts";
import { convertNpm } from "./npm/npm.ts";
import { convertTraefikFile } from "./traefik/traefik.ts";
import { Output } from "./output.ts";
import { type ImportSource, MAX_SOURCE_BYTES } from "./programs.ts";
import { Report, type ReportEntry } from "./report.ts";
import { dropInvalid } from "./drop-invalid.ts";

export interface Conversion {
  /** The configuration file to import. */
  readonly document: unknown;
  /** The result for every object of the source, what was not imported first. */
  readonly report: readonly ReportEntry[];
}

/** Functions that other rooms provide. */
export interface ConversionContext {
  /** Plugins of the gateway that imports the result. */
  readonly plugins: PluginCatalogue;
  readonly parseJson: ParseJson;
  /** Reads a database from memory. */
  readonly openTables: OpenTables;
}

/** Throws a 400 for an invalid source. */
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
    case "traefik":
      await convertTraefikFile(bytes, output, context);
      break;
    case "compose":
      await convertCompose(bytes, output, context);
      break;
    default:
      from satisfies never;
  }
  const document = dropInvalid(output);
  return { document, report: report.finish() };
}
