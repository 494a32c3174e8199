// Calls of the management API on the same origin: typed, one kind of error, retried after signing in again; knows no page.
import createClient, { type Client } from "openapi-fetch";
import { ApiError, toApiError } from "./error.ts";
import type { paths } from "./schema.d.ts";
import { SignInGate } from "./sign-in-gate.ts";

export interface SendOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: unknown;
  /** In place of `body`: something that is sent as it is. */
  readonly content?: { readonly type: string; readonly data: Blob | string };
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** An ETag: go ahead only if the object still has it. */
  readonly ifMatch?: string | null;
  readonly signal?: AbortSignal;
  /** False: a 401 is an error like others. Default: wait until somebody has signed in, and send again. */
  readonly waitsForSignIn?: boolean;
}

/** A successful answer. */
export interface Answer<T> {
  readonly value: T;
  /** Version of the object, for `ifMatch`. */
  readonly etag: string | null;
  /** Number of the configuration that all workers serve now; null for reads. */
  readonly revision: number | null;
  /** Allowed, but hardly meant. */
  readonly warning: string | null;
  /** What a delete took along. */
  readonly alsoDeleted: string | null;
  /** Of a list that comes in pages: `before` of the next one; null: this was the last. */
  readonly next: string | null;
}

const PREFIX = "/api/v1";

export class Connection {
  readonly gate = new SignInGate();
  /** All endpoints, typed from the description of the API. Unsuccessful answers are thrown as ApiError: use `unwrap`. */
  readonly api: Client<paths>;

  constructor() {
    this.api = createClient<paths>({ baseUrl: "", fetch: (request) => this.#fetch(request, true) });
    this.api.use({
      async onResponse({ response }) {
        if (!response.ok) throw await toApiError(response);
      },
    });
  }

  /** Sends to `path`, relative to /api/v1; rejects with an ApiError unless the answer is a success. */
  async send<T>(path: string, options: SendOptions = {}): Promise<Answer<T>> {
    const response = await this.request(path, options);
    return { value: (await response.json()) as T, ...factsOf(response.headers) };
  }

  /** The same for answers that are no JSON, such as files. */
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
    // A request can be read once only, and this one may have to be sent again.
    const again = waitsForSignIn ? request.clone() : null;
    let response: Response;
    try {
      response = await fetch(request);
    } catch (error) {
      if (request.signal.aborted) throw error;
      throw new ApiError(0, "the gateway cannot be reached");
    }
    if (response.status !== 401 || again === null) return response;
    await this.gate.wait();
    return await this.#fetch(again, true);
  }
}

function factsOf(headers: Headers): Omit<Answer<unknown>, "value"> {
  const revision = headers.get("x-config-revision");
  return {
    etag: headers.get("etag"),
    revision: revision === null ? null : Number(revision),
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

/** The data of a call of `connection.api`; failures have been thrown by then. */
export async function unwrap<T>(call: Promise<{ readonly data?: T }>): Promise<T> {
  const { data } = await call;
  return data as T;
}
