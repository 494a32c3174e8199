// The typed client of the management API, on openapi-fetch; knows no path.
import createFetchClient from "openapi-fetch";

/** See index.d.ts. */
export function createClient({ url = "http://127.0.0.1:9080", token, ...options } = {}) {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return createFetchClient({
    ...options,
    baseUrl: url.replace(/\/+$/, ""),
    headers: { ...headers, ...options.headers },
  });
}
