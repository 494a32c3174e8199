// Calls of the management API on the same origin, with one error type and a retry after sign-in; knows no page.
import { ApiError, toApiError } from "./error.ts";
import { Reachability } from "./reachability.ts";
import { SignInGate } from "./sign-in-gate.ts";
import { withShownNames } from "./shown-names.ts";

export interface SendOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: unknown;
  /** Instead of `body`: content that is sent unchanged. */
  readonly content?: { readonly type: string; readonly data: Blob | string };
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** If-Match: the ETag that the object must still have. */
  readonly ifMatch?: string | null;
  readonly signal?: AbortSignal;
  /** False: a 401 rejects. Default: wait for sign-in and send again. */
  readonly waitsForSignIn?: boolean;
}

/** From the headers `Sluice-Nodes` and `Sluice-Nodes-Missing`. */
export interface LiveNodes {
  /** `2`; `1` of an unknown number while the database does not answer. */
  readonly live: string;
  /** `3`; `?`: unknown. */
  readonly all: string;
  /** `n2 (away), n3 (lagging)`; empty: none. */
  readonly missing: string;
}

/** A successful response. */
export interface ApiResponse<T> {
  readonly value: T;
  /** ETag of the object, for `ifMatch`. */
  readonly etag: string | null;
  /** Revision that all workers serve now; null for reads. */
  readonly revision: number | null;
  /** Nodes of the fleet that serve the change; null: no fleet, or nothing was changed. */
  readonly nodes: LiveNodes | null;
  /** Warning about a valid but suspicious change. */
  readonly warning: string | null;
  /** Objects that a cascade deleted. */
  readonly alsoDeleted: string | null;
  /** Of a paginated list: `before` of the next page; null: last page. */
  readonly next: string | null;
}

const PREFIX = "/api/v1";

export class Connection {
  readonly gate = new SignInGate();
  readonly reachability = new Reachability();

  /** Sends to `path`, relative to /api/v1; rejects with an ApiError unless the response is a success. */
  async send<T>(path: string, options: SendOptions = {}): Promise<ApiResponse<T>> {
    const response = await this.request(path, options);
    const text = await response.text();
    const value: unknown = JSON.parse(text);
    const shown = text.includes("xn--") ? withShownNames(value) : value;
    return { value: shown as T, ...factsOf(response.headers) };
  }

  /** The same for responses that are not JSON, such as files. */
  async request(path: string, options: SendOptions = {}): Promise<Response> {
    const { method = "GET", body, content, query, ifMatch, waitsForSignIn = true } = options;
    const { signal } = options;
    const headers = new Headers(options.headers);
    if (body !== undefined) headers.set("content-type", "application/json");
    if (content !== undefined) headers.set("content-type", content.type);
    if (ifMatch !== undefined && ifMatch !== null) headers.set("if-match", ifMatch);
    const request = new Request(`${PREFIX}${path}${toQuery(query)}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(content === undefined ? {} : { body: content.data }),
      ...(signal === undefined ? {} : { signal }),
    });
    const response = await this.#fetch(request, waitsForSignIn);
    if (!response.ok) throw await toApiError(response);
    return response;
  }

  async #fetch(request: Request, waitsForSignIn: boolean): Promise<Response> {
    // A request body can be read only once, and this request may be sent again.
    const again = waitsForSignIn ? request.clone() : null;
    let response: Response;
    try {
      response = await fetch(request);
      this.reachability.seen();
    } catch (error) {
      if (request.signal.aborted) throw error;
      this.reachability.missed();
      throw new ApiError(0, "the gateway cannot be reached");
    }
    if (response.status !== 401 || again === null) return response;
    await this.gate.wait();
    return await this.#fetch(again, true);
  }
}

const inWords = (state: string) => state.replaceAll("_", " ");

export function liveNodesOf(headers: Headers): LiveNodes | null {
  const [live, all] = headers.get("sluice-nodes")?.split("/") ?? [];
  if (live === undefined || all === undefined) return null;
  const missing = headers.get("sluice-nodes-missing") ?? "";
  return {
    live,
    all,
    missing: missing.replaceAll(/;([a-z_]+)/g, (_, state) => ` (${inWords(state)})`),
  };
}

function factsOf(headers: Headers): Omit<ApiResponse<unknown>, "value"> {
  const revision = headers.get("x-config-revision");
  return {
    etag: headers.get("etag"),
    revision: revision === null ? null : Number(revision),
    nodes: liveNodesOf(headers),
    warning: headers.get("x-warning"),
    alsoDeleted: headers.get("x-deleted"),
    next: headers.get("x-next"),
  };
}

function toQuery(query: SendOptions["query"]): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {}))
    if (value !== undefined && value !== "") parameters.set(name, String(value));
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}
