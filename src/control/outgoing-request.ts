// Requests of the gateway's own to other servers: limits, and failures in words; knows no server.

export interface RequestLimits {
  /** For the whole exchange, from name resolution to the last byte of the response. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

export const requestLimits: RequestLimits = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** Null when the body exceeds the limit; the rest is not read. */
export async function readText(response: Response, maxBytes: number): Promise<string | null> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > maxBytes) {
      void reader.cancel().catch(() => undefined);
      return null;
    }
    chunks.push(value);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The cause is dropped: it may contain the URL with its parameters. */
export function reasonOf(error: unknown, { timeoutMs }: Pick<RequestLimits, "timeoutMs">): string {
  const { name, code, message } = error as Error & { readonly code?: unknown };
  if (code === "REFUSED_DESTINATION") return message;
  if (name === "TimeoutError") return `did not respond within ${timeoutMs / 1000} s`;
  if (code === "ECONNREFUSED" || code === "ConnectionRefused") return "refused the connection";
  if (code === "ENOTFOUND") return "is a name that cannot be resolved";
  if (typeof code !== "string") return "cannot be reached";
  return /CERT|ISSUER|SIGNATURE/.test(code)
    ? `presents a certificate that is not trusted (${code})`
    : `cannot be reached (${code})`;
}
