// The request target as a value, where tests compare it.
import { readTarget, type RequestTarget } from "../../src/http/request-target.ts";

/** Null: it is not valid. */
export function splitTarget(url: string): RequestTarget | null {
  const target = { path: "", query: "", target: "" };
  return readTarget(url, target) ? target : null;
}
