// What one endpoint of the management API is, independent of the framework that routes to it; knows no resource.
import type { Principal } from "../control/principal.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** An admitted request, parsed. */
export interface Call {
  readonly principal: Principal;
  readonly method: string;
  /** Decoded parts of the path: `id`. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** Scheme and host as the client used them: `https://gateway.example:9080`. */
  readonly origin: string;
  /** The parsed body; undefined for endpoints without one. */
  readonly body: unknown;
}

export interface Reply {
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Values of Set-Cookie fields. */
  readonly cookies?: readonly string[];
}

/** The part of an OpenAPI operation that the endpoint itself describes. */
export interface Description {
  /** Name in generated clients. Default: from method and path. */
  readonly operationId?: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly unknown[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
}

export interface Endpoint {
  readonly method: Method;
  /** As in the guard's table: `/api/v1/services/:id`. */
  readonly path: string;
  /** `optional`: the body may be absent. */
  readonly takesBody: boolean | "optional";
  /** Reads the body; default: JSON of the usual size. */
  readonly readBody?: (request: Request) => Promise<unknown>;
  readonly description: Description;
  /** Handles a call: a Reply becomes JSON with status 200, a Response stays as it is. Throws an ApiError for everything else. */
  readonly answer: (call: Call) => Reply | Response | Promise<Reply | Response>;
}
