// The types of the client.
import type { Client, ClientOptions } from "openapi-fetch";
import type { paths } from "./schema.d.ts";

export type { components, operations, paths } from "./schema.d.ts";

export interface SluiceOptions extends Omit<ClientOptions, "baseUrl"> {
  /** URL of the management API, without `/api/v1`. Default: `http://127.0.0.1:9080`. */
  url?: string;
  /** The admin token or a named token. Default: none, for a gateway without users. */
  token?: string;
}

/**
 * A client with a method for each HTTP method: `client.GET("/api/v1/routes/{id}", { params: { path: { id: "shop" } } })`.
 * Each resolves to `{ data, error, response }`; `error.error` is the message of a refusal. It rejects when the gateway does not respond.
 */
export function createClient(options?: SluiceOptions): Client<paths>;
