// Sends a configuration to the gateway, as a dry run or for real; draws nothing.
import type { Answer, SendOptions } from "../../api/connection.ts";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { sendUnlessShutOut } from "../../parts/lock-out-prompt.tsx";
import type { Format, Source } from "./import-source.ts";

export type Changes = Schemas["Changes"];

/** All that is sent. */
export interface Import {
  readonly source: Source;
  readonly format: Format;
  readonly mode: "merge" | "replace";
  readonly passphrase: string;
}

/** Sends it, for real or as a dry run, which shows what is refused for want of force, too. */
export function useSendImport(): (wanted: Import, isDry: boolean) => Promise<Answer<Changes>> {
  const connection = useConnection();
  const send = ({ source, format, mode, passphrase }: Import, query: SendOptions["query"]) =>
    connection.send<Changes>("/import", {
      method: "POST",
      query: { mode, ...(format === "sluice" ? {} : { from: format }), ...query },
      content: {
        type: format === "npm" ? "application/octet-stream" : `application/${source.type}`,
        data: source.data,
      },
      ...(source.isEncrypted ? { headers: { "x-passphrase": passphrase } } : {}),
    });
  return (wanted, isDry) =>
    isDry
      ? send(wanted, { dry_run: 1, force: 1 })
      : sendUnlessShutOut((force) => send(wanted, force));
}
