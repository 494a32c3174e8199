// Records rejected changes in the audit log: who tried what, and why it failed; decides nothing about any request.
import type { AuditSink } from "../control/audit-entry.ts";
import type { Principal } from "../control/principal.ts";
import { UUID_PATTERN } from "../model/fields.ts";
import { type AccessRow, createAccessMatcher } from "./access.ts";
import type { Authenticate } from "./guard.ts";

/** The error response to a request. */
export interface Refusal {
  readonly pathname: string;
  readonly peer: string;
  readonly status: number;
  /** The error message that the client received. */
  readonly message: string;
}

export class Refusals {
  readonly #audit: AuditSink;
  readonly #match: ReturnType<typeof createAccessMatcher>;
  readonly #callers = new WeakMap<Request, Principal>();

  constructor(audit: AuditSink, table: readonly AccessRow[]) {
    this.#audit = audit;
    this.#match = createAccessMatcher(table);
  }

  /** Wraps the function so that the principal is known for as long as the request lasts. */
  watch(authenticate: Authenticate): Authenticate {
    return (request, peer, row) => {
      const principal = authenticate(request, peer, row);
      if (principal !== null) this.#callers.set(request, principal);
      return principal;
    };
  }

  /** Records the request if it would have changed something; of unauthenticated clients only the rejection. */
  record(request: Request, { pathname, peer, status, message }: Refusal): void {
    const { method } = request;
    if (method === "GET" || method === "HEAD" || isDryRun(request)) return;
    const found = this.#match(pathname);
    const needed = found?.row.methods[method];
    // Open endpoints, such as sign-in, record their own failures.
    if (found === null || needed === undefined || needed === "open") return;
    const caller = this.#callers.get(request);
    if (caller === undefined && status !== 401 && status !== 403) return;
    this.#audit.record({
      actor: caller?.actor ?? "anonymous",
      method: caller?.method ?? "none",
      address: peer,
      ...describeAttempt(method, found.row.path),
      ...nameObject(found.params["id"]),
      result: status >= 500 ? "failed" : "refused",
      revision: null,
      detail: { method, path: pathname, status, error: message },
    });
  }
}

function isDryRun(request: Request): boolean {
  const value = URL.parse(request.url)?.searchParams.get("dry_run") ?? "0";
  return value !== "0" && value !== "false";
}

const ACTIONS: Readonly<Record<string, string>> = {
  POST: "create",
  PUT: "update",
  PATCH: "update",
  DELETE: "delete",
};

/** `/api/v1/services/:id/targets` -> a target; `/api/v1/users/:id/password` -> the password of a user. */
function describeAttempt(method: string, path: string) {
  const words = path.split("/").slice(3);
  const action = ACTIONS[method] ?? method.toLowerCase();
  const last = words.findLast((word) => !word.startsWith(":")) ?? "";
  const [first = ""] = words;
  if (first === "admin") return { action, kind: toKind(words.join("_")) };
  if (words.includes(":id") && last !== first && !last.endsWith("s"))
    return { action: last, kind: toKind(first) };
  return { action, kind: toKind(last) };
}

/** As in the entries of changes: `stream-routes` -> `stream_route`. */
const toKind = (word: string) =>
  word === "settings" ? word : word.replaceAll("-", "_").replace(/s$/, "");

function nameObject(part: string | undefined) {
  const key = part === undefined ? null : decoded(part);
  return key !== null && UUID_PATTERN.test(key)
    ? { object_id: key.toLowerCase(), object_name: null }
    : { object_id: null, object_name: key };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
