// Sends a configuration to the gateway, as a dry run or for real; draws nothing.
import type { Answer } from "../../api/connection.ts";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import type { Format, Source } from "./import-source.ts";

export type Changes = Schemas["Changes"];

/** All that is sent. */
export interface Import {
  readonly source: Source;
  readonly format: Format;
  readonly mode: "merge" | "replace";
  readonly passphrase: string;
}

/** Sends it, for real or as a dry run. */
export function useSendImport(): (wanted: Import, isDry: boolean) => Promise<Answer<Changes>> {
  const connection = useConnection();
  return ({ source, format, mode, passphrase }, isDry) =>
    connection.send<Changes>("/import", {
      method: "POST",
      query: {
        mode,
        ...(format === "sluice" ? {} : { from: format }),
        ...(isDry ? { dry_run: 1 } : {}),
      },
      content: {
        type: format === "npm" ? "application/octet-stream" : `application/${source.type}`,
        data: source.data,
      },
      ...(source.isEncrypted ? { headers: { "x-passphrase": passphrase } } : {}),
    });
}
