// One request to the identity provider, with limits on time and size; knows no endpoint.
import { readText, reasonOf, type RequestLimits } from "../../control/outgoing-request.ts";
import { SsoError } from "./failure.ts";

export interface ProviderResponse {
  readonly status: number;
  /** The parsed body; undefined when it is not JSON. */
  readonly body: unknown;
}

interface ProviderRequest {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body of a POST request; absent: GET. */
  readonly form?: URLSearchParams;
}

/**
 * Sends the request and returns any response, redirects included. Throws an SsoError without a complete response within the
 * limits.
 */
export async function askProvider(
  request: ProviderRequest,
  limits: RequestLimits,
): Promise<ProviderResponse> {
  const { url, form } = request;
  const host = URL.parse(url)?.host ?? "";
  try {
    const response = await fetch(url, {
      method: form === undefined ? "GET" : "POST",
      headers: { accept: "application/json", ...request.headers },
      ...(form === undefined ? {} : { body: form }),
      // A redirect could send the client secret in the request to another server.
      redirect: "manual",
      signal: AbortSignal.timeout(limits.timeoutMs),
    });
    const text = await readText(response, limits.maxBytes);
    if (text === null) throw new SsoError("provider_error", `the response of ${host} is too large`);
    return { status: response.status, body: parse(text) };
  } catch (error) {
    if (error instanceof SsoError) throw error;
    throw new SsoError("provider_unreachable", `${host} ${reasonOf(error, limits)}`);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
