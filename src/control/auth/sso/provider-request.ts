// One request to the identity provider, bounded in time and size; knows nothing of what is asked.
import { SsoError } from "./failure.ts";

export interface RequestLimits {
  /** For the whole answer, from the name look-up to the last byte. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

export const requestLimits: RequestLimits = { timeoutMs: 5000, maxBytes: 1_048_576 };

export interface ProviderAnswer {
  readonly status: number;
  /** The parsed body; undefined when it is no JSON. */
  readonly body: unknown;
}

interface ProviderRequest {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with POST; absent: GET. */
  readonly form?: URLSearchParams;
}

/**
 * Sends the request; redirects are answered to the caller like everything else. Throws an SsoError when there is no whole
 * answer within the limits.
 */
export async function askProvider(
  request: ProviderRequest,
  limits: RequestLimits,
): Promise<ProviderAnswer> {
  const { url, form } = request;
  const host = URL.parse(url)?.host ?? "";
  try {
    const response = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      headers: { accept: "application/json", ...request.headers },
      ...(form === undefined ? {} : { body: form }),
      // A redirect could lead the request, and the client secret in it, to anybody.
      redirect: "manual",
      signal: AbortSignal.timeout(limits.timeoutMs),
    });
    const text = await readText(response, limits.maxBytes);
    if (text === null)
      throw new SsoError("provider_error", `the answer of ${host} is larger than allowed`);
    return { status: response.status, body: parse(text) };
  } catch (error) {
    if (error instanceof SsoError) throw error;
    throw new SsoError("provider_unreachable", `${host} ${reasonOf(error, limits)}`);
  }
}

/** Null when there are too many bytes; what is left of them is not read. */
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

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error itself is not passed on: it may hold the address, and with it what was sent. */
export function reasonOf(error: unknown, { timeoutMs }: Pick<RequestLimits, "timeoutMs">): string {
  const { name, code } = error as { readonly name?: string; readonly code?: unknown };
  if (name === "TimeoutError") return `did not answer within ${timeoutMs / 1000} s`;
  if (code === "ECONNREFUSED" || code === "ConnectionRefused") return "refused the connection";
  if (code === "ENOTFOUND") return "is a name that cannot be resolved";
  if (typeof code !== "string") return "cannot be reached";
  return /CERT|ISSUER|SIGNATURE/.test(code)
    ? `shows a certificate that is not trusted (${code})`
    : `cannot be reached (${code})`;
}

/** Whether secrets may be sent there: encrypted, or without leaving the machine. */
export function isSafeUrl(text: unknown): text is string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.password !== "") return false;
  if (url.protocol === "https:") return true;
  return url.protocol === "http:" && isLoopbackHost(url.hostname);
}

export const isLoopbackHost = (host: string): boolean =>
  host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);

/** What a provider said in its own words: short, on one line, without any of the secrets. */
export function quote(text: unknown, secrets: readonly (string | null)[]): string {
  if (typeof text !== "string") return "";
  const clean = secrets.reduce<string>(
    (rest, secret) => (secret ? rest.replaceAll(secret, "***") : rest),
    text,
  );
  return clean.replace(/[^\x20-\x7e]/g, "?").slice(0, 200);
}
