// Checks of single texts for the compiler, from the modules that know them; knows no resource as a whole.
import { proxyNetworkProblem } from "../net/known-proxies.ts";
import { parseAuthority } from "../http/authority.ts";
import { certificatesProblem } from "../crypto/certificate-chain.ts";
import { revocationsProblem } from "../crypto/revocation-list.ts";
import { isSocketHost } from "../model/target.ts";
import { upgradeProtocolProblem } from "../http/upgrade-protocols.ts";
import { normalizeAddress } from "../net/address.ts";
import { cidrProblem } from "../net/cidr.ts";
import { regexProblem } from "../snapshot/regex-safety.ts";
import { hostListProblems, routePatternProblems } from "./route-pattern.ts";
import type { FieldChecks, TextCheck } from "../model/object-rules.ts";

const targetHost: TextCheck = (host) => {
  if (isSocketHost(host)) return socketProblem(host.slice("unix:".length));
  if (host.includes(":"))
    return isBareAddress(host)
      ? null
      : "must be a name or an IP address, without scheme, port and brackets";
  // Some programs read a name with a numeric last label as an IPv4 address: they only agree on dotted quads.
  return parseAuthority(host) === null ? "must be a name or an IP address" : null;
};

/** The length of sun_path without its final NUL. */
const MAX_SOCKET_BYTES = 107;

function socketProblem(path: string): string | null {
  if (!/^\/[^\p{Cc}]+$/u.test(path)) return "must be unix: and an absolute path";
  if (path.split("/").includes("..")) return "must be a path without ..";
  return Buffer.byteLength(path) > MAX_SOCKET_BYTES
    ? `must be a path of at most ${MAX_SOCKET_BYTES} bytes`
    : null;
}

const serverName: TextCheck = (name) =>
  isBareAddress(name) || parseAuthority(name)?.port === null
    ? null
    : "must be a name or an IP address";

const hostHeader: TextCheck = (host) =>
  parseAuthority(host) === null
    ? 'must be "preserve", "target", or a host name with an optional port'
    : null;

const listenAddress: TextCheck = (address) =>
  isBareAddress(address) ? null : "must be an IP address";

/** normalizeAddress also accepts brackets, ports and zones, which these fields must not have. */
function isBareAddress(text: string): boolean {
  return (
    /^[0-9a-fA-F:.]+$/.test(text) && cidrProblem(text) === null && normalizeAddress(text) !== null
  );
}

/** All of them. */
export const fieldChecks: FieldChecks = {
  cidr: cidrProblem,
  proxyNetwork: proxyNetworkProblem,
  targetHost,
  hostHeader,
  serverName,
  authorities: certificatesProblem,
  revocations: revocationsProblem,
  hosts: hostListProblems,
  listenAddress,
  upgradeProtocol: upgradeProtocolProblem,
  regex: regexProblem,
  route: routePatternProblems,
};
