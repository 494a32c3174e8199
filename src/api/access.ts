// THE table of the management API: every path, its methods and who may use them; what is not in it does not exist.
import type { Role } from "../control/principal.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  pathOf,
} from "../model/gateway-config.ts";

export interface AccessRow {
  /** `:name` is one segment; `*` at the end is any rest. */
  readonly path: string;
  /** Minimum role by method; `open` needs no authentication. HEAD follows GET. */
  readonly methods: Readonly<Record<string, Role | "open">>;
  /** An event stream: it accepts a token as `access_token` in the query, because an EventSource cannot set headers. */
  readonly stream?: true;
  /** Other nodes of the fleet read it (GET) with a token of their own. */
  readonly nodes?: true;
}

/** The JSON Schema of configuration files. */
export const SCHEMA_PATH = "/schema.json";

const readOnly = { GET: "viewer" } as const;
/** The client's own password, second factor and sessions; the endpoint checks access to those of others. */
const self = "viewer";
const open = { GET: "open" } as const;

/** `/api/v1/dns-providers` */
export const collectionPath = (name: CollectionName): string => `/api/v1/${pathOf(name)}`;

/** The rows of a collection and of its objects. Endpoints require an admin for some objects of other collections as well. */
function rowsOf(name: CollectionName): AccessRow[] {
  const { read = "viewer", write = "editor" } = definitionOf(name).api;
  const path = collectionPath(name);
  return [
    { path, methods: { GET: read, POST: write } },
    { path: `${path}/:id`, methods: { GET: read, PUT: write, PATCH: write, DELETE: write } },
  ];
}

export const accessTable: readonly AccessRow[] = [
  ...collectionNames.flatMap(rowsOf),
  { path: "/api/v1/applications/check-upstream", methods: { POST: "editor" } },
  { path: "/api/v1/services/:id/targets", methods: { GET: "viewer", POST: "editor" } },
  { path: "/api/v1/services/:id/health", methods: readOnly, nodes: true },
  { path: "/api/v1/targets/:id/health", methods: { PUT: "editor" } },
  { path: "/api/v1/routes/explain", methods: { POST: "viewer" } },
  { path: "/api/v1/plugins/schemas", methods: readOnly },
  { path: "/api/v1/plugins/schemas/:name", methods: readOnly },
  { path: "/api/v1/plugins/directory", methods: { GET: "viewer", POST: "admin" } },
  { path: "/api/v1/cache/purge", methods: { POST: "editor" } },
  { path: "/api/v1/consumers/:id/credentials", methods: { GET: "viewer", POST: "editor" } },
  { path: "/api/v1/credentials/:id/rotate", methods: { POST: "editor" } },
  { path: "/api/v1/auth/sso/start", methods: open },
  { path: "/api/v1/auth/sso/callback", methods: open },
  { path: "/api/v1/sso", methods: { GET: "admin", PUT: "admin", PATCH: "admin" } },
  { path: "/api/v1/sso/test", methods: { POST: "admin" } },
  { path: "/api/v1/users/:id/password", methods: { PUT: self } },
  { path: "/api/v1/users/:id/totp", methods: { GET: self, POST: self, DELETE: self } },
  { path: "/api/v1/users/:id/totp/confirm", methods: { POST: self } },
  { path: "/api/v1/auth/login", methods: { POST: "open" } },
  { path: "/api/v1/auth/logout", methods: { POST: self } },
  { path: "/api/v1/auth/me", methods: { GET: self } },
  { path: "/api/v1/auth/sessions", methods: { GET: self } },
  { path: "/api/v1/auth/sessions/:id", methods: { DELETE: self } },
  { path: "/api/v1/admin/token", methods: { GET: "admin", POST: "admin", DELETE: "admin" } },
  { path: "/api/v1/discovery", methods: readOnly },
  { path: "/api/v1/nodes", methods: readOnly },
  { path: "/api/v1/nodes/:id", methods: { GET: "viewer", DELETE: "admin" } },
  { path: "/api/v1/nodes/:id/drain", methods: { POST: "admin", DELETE: "admin" } },
  { path: "/api/v1/audit", methods: { GET: "admin" } },
  { path: "/api/v1/events", methods: readOnly, stream: true, nodes: true },
  { path: "/api/v1/stream-routes/:id/connections", methods: readOnly },
  { path: "/api/v1/routes/:id/connections", methods: readOnly },
  { path: "/api/v1/connections/:id", methods: { DELETE: "editor" } },
  { path: "/api/v1/certificates/preflight", methods: { POST: "editor" } },
  { path: "/api/v1/certificates/:id/pem", methods: readOnly },
  { path: "/api/v1/certificates/:id/renew", methods: { POST: "editor" } },
  { path: "/api/v1/certificates/:id/revoke", methods: { POST: "editor" } },
  { path: "/api/v1/local-ca", methods: readOnly },
  { path: "/api/v1/local-ca/rotate", methods: { POST: "admin" } },
  // Devices that are to trust the root have no login, and it is public.
  { path: "/api/v1/local-ca/root.pem", methods: open },
  { path: "/api/v1/local-ca/root.crt", methods: open },
  { path: "/api/v1/dns-providers/types", methods: readOnly },
  { path: "/api/v1/dns-providers/:id/test", methods: { POST: "editor" } },
  { path: "/api/v1/alerts/types", methods: readOnly },
  { path: "/api/v1/alerts/:id/test", methods: { POST: "editor" } },
  { path: "/api/v1/alerts/:id/messages", methods: readOnly },
  { path: "/api/v1/acme/accounts/:id/rotate-key", methods: { POST: "editor" } },
  // Without secrets: the endpoint requires an admin for those.
  { path: "/api/v1/export", methods: readOnly },
  { path: "/api/v1/import", methods: { POST: "admin" } },
  { path: "/api/v1/revisions", methods: readOnly },
  { path: "/api/v1/revisions/:id", methods: readOnly },
  // The endpoint requires the author of the revision, and an admin for what only admins may change.
  { path: "/api/v1/revisions/:id/undo", methods: { POST: "editor" } },
  { path: "/api/v1/revisions/:id/restore", methods: { POST: "admin" } },
  { path: "/api/v1/requests/stream", methods: readOnly, stream: true, nodes: true },
  { path: "/api/v1/requests", methods: readOnly, nodes: true },
  { path: "/api/v1/requests/:id", methods: readOnly },
  { path: "/api/v1/stats", methods: readOnly, nodes: true },
  { path: "/api/v1/settings", methods: { GET: "viewer", PUT: "admin", PATCH: "admin" } },
  { path: "/api/v1/admin/status", methods: open },
  { path: "/healthz", methods: open },
  { path: "/readyz", methods: open },
  { path: "/metrics", methods: open },
  { path: "/openapi.yaml", methods: open },
  // Of configuration files, for editors: it holds no data.
  { path: SCHEMA_PATH, methods: open },
  { path: "/docs", methods: open },
  { path: "/docs/json", methods: open },
  { path: "/openapi.json", methods: open },
  { path: "/docs/scalar.js", methods: open },
  { path: "/", methods: open },
  // Pages and assets of the web UI: they hold no data.
  { path: "/ui", methods: open },
  { path: "/ui/*", methods: open },
  { path: "/assets/:name", methods: open },
];

export interface AccessMatch {
  readonly row: AccessRow;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the row of a raw, percent-encoded path; null when there is none. Segments compare exactly. */
export function createAccessMatcher(
  table: readonly AccessRow[],
): (pathname: string) => AccessMatch | null {
  // Named paths before those of all ids: an object of that name is found by its id only.
  const rows = table
    .map((row) => ({ row, segments: row.path.split("/") }))
    .toSorted((one, other) => freedomOf(one.segments) - freedomOf(other.segments));
  return (pathname) => {
    const parts = pathname.split("/");
    for (const { row, segments } of rows) {
      if (row.path.endsWith("/*")) {
        if (pathname.startsWith(row.path.slice(0, -1))) return { row, params: {} };
        continue;
      }
      if (segments.length !== parts.length) continue;
      const params: Record<string, string> = {};
      const fits = segments.every((segment, index) => {
        const part = parts[index] ?? "";
        if (!segment.startsWith(":")) return segment === part;
        params[segment.slice(1)] = part;
        return part !== "";
      });
      if (fits) return { row, params };
    }
    return null;
  };
}

const freedomOf = (segments: readonly string[]) =>
  segments.filter((segment) => segment.startsWith(":")).length;
