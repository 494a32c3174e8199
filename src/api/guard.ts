// Decides about every request before any handler: network, host, origin, path, method, role. Denies by default; handles nothing.
import { anonymous, includesRole, type Principal, type Role } from "../control/principal.ts";
import { ApiError } from "../model/error.ts";
import { type AccessMatch, type AccessRow, createAccessMatcher } from "./access.ts";

export type Authenticate = (request: Request, peer: string, row: AccessRow) => Principal | null;

export interface GuardOptions {
  readonly table: readonly AccessRow[];
  /** Whether the address of a socket may use the API at all. */
  readonly isAllowedAddress: (address: string) => boolean;
  /** Whether the address of a socket belongs to this machine; default: no address does. */
  readonly isOwnMachine?: (address: string) => boolean;
  /** Host that the listener is bound to. */
  readonly boundHost: string;
  readonly publicUrl: () => string | null;
  /** The gateway's token in CDN-Loop (RFC 8586) of every proxied request; absent: none. */
  readonly loopToken?: string;
  /** The principal; null when credentials are required and absent; throws a 401 for wrong ones. */
  readonly authenticate?: Authenticate;
  /** The principal of another node; null: the request is of none; throws a 401 for a token that is not valid for it. */
  readonly nodeReader?: (request: Request, peer: string) => Principal | null;
}

export interface Admission extends AccessMatch {
  /** The minimum role. */
  readonly needed: Role | "open";
  readonly principal: Principal;
}

/** The only path that every address may request. */
const HEALTH_PATH = "/healthz";
/** `sluice healthcheck` requests it from the machine itself, independent of the allowed networks. */
const READY_PATH = "/readyz";

/** Returns the function that admits a request or throws the ApiError that rejects it. */
export function createGuard(
  options: GuardOptions,
): (request: Request, pathname: string, peer: string) => Admission {
  const match = createAccessMatcher(options.table);
  const authenticate = options.authenticate ?? ((_, peer) => anonymous(peer));
  return (request, pathname, peer) => {
    // Its token says more than its address.
    const node = options.nodeReader?.(request, peer) ?? null;
    if (pathname !== HEALTH_PATH) {
      const isOwnCheck = pathname === READY_PATH && options.isOwnMachine?.(peer) === true;
      if (node === null && !isOwnCheck && !options.isAllowedAddress(peer))
        throw new ApiError(403, "this address may not use the management API");
      checkLoop(request, options.loopToken);
      if (node === null) checkHost(request, options);
    }
    checkOrigin(request, options.publicUrl());
    const found = match(pathname);
    if (found === null) throw new ApiError(404, "there is no such path");
    const needed = roleFor(found.row, request.method);
    const principal =
      needed === "open" ? anonymous(peer) : (node ?? authenticate(request, peer, found.row));
    if (principal === null) throw new ApiError(401, "authentication is required");
    if (needed !== "open" && !includesRole(principal.role, needed))
      throw new ApiError(403, `the role ${needed} is required`);
    return { ...found, params: decodeParams(found.params), needed, principal };
  };
}

function roleFor({ methods }: AccessRow, method: string) {
  const role = methods[method === "HEAD" ? "GET" : method];
  if (role !== undefined && Object.hasOwn(methods, method === "HEAD" ? "GET" : method)) return role;
  const allowed = Object.keys(methods).flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : name));
  throw new ApiError(405, `${method} is not allowed here; allowed: ${allowed.join(", ")}`, {
    headers: { allow: allowed.join(", ") },
  });
}

function decodeParams(params: Readonly<Record<string, string>>): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(params).map(([name, part]) => [name, decodeURIComponent(part)]),
    );
  } catch {
    throw new ApiError(400, "the path is not valid percent-encoding");
  }
}

/**
 * A target may be this listener under any name: a proxied client bypasses the firewall and arrives with the gateway's
 * address.
 */
function checkLoop({ headers }: Request, token: string | undefined): void {
  if (token !== undefined && headers.get("cdn-loop")?.includes(token) === true)
    throw new ApiError(403, "requests that the gateway itself proxies are not accepted");
}

/**
 * A page of another site can make a browser send requests here; the browser then sends Sec-Fetch-Site or Origin. Neither
 * field: no browser.
 */
function checkOrigin(request: Request, publicUrl: string | null): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin" && site !== "none")
    throw new ApiError(403, "requests from other sites are not accepted");
  const origin = request.headers.get("origin");
  if (origin === null) return;
  const host = request.headers.get("host");
  const own = [`http://${host}`, `https://${host}`, publicUrl].map(toOrigin);
  const foreign = toOrigin(origin);
  if (foreign === null || !own.includes(foreign))
    throw new ApiError(403, "requests from other sites are not accepted");
}

function toOrigin(url: string | null): string | null {
  return url !== null && URL.canParse(url) ? new URL(url).origin : null;
}

/**
 * Against DNS rebinding: rejects foreign names that resolve to this machine. An IP address cannot be rebound, and a
 * request without Host comes from no browser.
 */
function checkHost(request: Request, { boundHost, publicUrl }: GuardOptions): void {
  const url = publicUrl();
  if (url === null && !isLoopback(boundHost)) return;
  const header = request.headers.get("host");
  if (header === null) return;
  const host = URL.canParse(`http://${header}`) ? new URL(`http://${header}`).hostname : "";
  if (isAddress(host) || host === "localhost" || host.endsWith(".localhost")) return;
  if (host === boundHost.toLowerCase()) return;
  if (url !== null && URL.canParse(url) && new URL(url).hostname === host) return;
  throw new ApiError(403, "the Host of the request is not a name of this gateway");
}

const isAddress = (host: string) => host.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(host);

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}
