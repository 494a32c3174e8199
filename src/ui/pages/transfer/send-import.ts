// Sends an import to the gateway, as a dry run or applied; renders nothing.
import type { ApiResponse, SendOptions } from "../../api/connection.ts";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { sendUnlessLockedOut } from "../../parts/lock-out-prompt.tsx";
import type { Format, Source } from "./import-source.ts";

export type Changes = Schemas["Changes"];

/** The content and options of an import. */
export interface Import {
  readonly source: Source;
  readonly format: Format;
  readonly mode: "merge" | "replace";
  readonly passphrase: string;
  /** Whether the user agrees to the terms of the CAs of imported ACME accounts. Default: no. */
  readonly agreesTerms?: boolean;
}

function contentTypeOf(format: Format, { type, contentType }: Source): string {
  if (contentType !== undefined) return contentType;
  if (format === "npm" || format === "auto") return "application/octet-stream";
  return format === "nginx" ? "text/plain" : `application/${type}`;
}

/** Sends it, as a dry run or applied; a dry run also reports what requires force. */
export function useSendImport(): (wanted: Import, isDry: boolean) => Promise<ApiResponse<Changes>> {
  const connection = useConnection();
  const send = (
    { source, format, mode, passphrase, agreesTerms = false }: Import,
    query: SendOptions["query"],
  ) =>
    connection.send<Changes>("/import", {
      method: "POST",
      query: { mode, ...fromOf(format, agreesTerms), ...query },
      content: {
        type: contentTypeOf(format, source),
        data: source.data,
      },
      ...(source.isEncrypted ? { headers: { "x-passphrase": passphrase } } : {}),
    });
  return (wanted, isDry) =>
    isDry
      ? send(wanted, { dry_run: 1, force: 1 })
      : sendUnlessLockedOut((force) => send(wanted, force));
}

const fromOf = (format: Format, agreesTerms: boolean): SendOptions["query"] =>
  format === "sluice" ? {} : { from: format, ...(agreesTerms ? { agree_acme_terms: 1 } : {}) };
