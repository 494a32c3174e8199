// Decides how a request that asks for an upgrade is served (RFC 9110 section 7.8); knows no handshake and no frame.
import { connectionOptions } from "../../http/hop-by-hop.ts";
import { carriesHttp, isUpgradeProtocol, protocolsIn } from "../../http/upgrade-protocols.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { ServiceRuntime } from "../service-runtime.ts";
import type { ClientRequest } from "./client-request.ts";

/** `none`: as an ordinary request without Upgrade, for this reason. */
export type UpgradeChoice =
  | { readonly kind: "websocket" }
  /** `protocols`: those that client and gateway would switch to, as the value of Upgrade. */
  | { readonly kind: "other"; readonly protocols: string }
  | { readonly kind: "none"; readonly reason: string };

const WEBSOCKET = { kind: "websocket" } as const;
const none = (reason: string): UpgradeChoice => ({ kind: "none", reason });

/** Call it where the request has the field Upgrade. */
export function chooseUpgrade(
  request: ClientRequest,
  { route }: RouteRuntime,
  service: ServiceRuntime,
): UpgradeChoice {
  const { method, upstreamMethod, stream } = request;
  const { upgrade, connectionField } = request.known;
  if (!route.websocket) return none("the route passes no upgrades (websocket: false)");
  // The field counts only when Connection names it.
  if (!connectionOptions(connectionField).includes("upgrade"))
    return none("the field Connection does not name Upgrade");
  const allowed = route.upgrade_protocols.map((name) => name.toLowerCase());
  const isAllowed = (name: string) => allowed.length === 0 || allowed.includes(name.toLowerCase());
  const asked = protocolsIn(upgrade ?? "");
  if (!asked.some(isAllowed))
    return none("upgrade_protocols of the route has none of those in Upgrade");
  // RFC 6455 section 4.2.1.
  if (upgrade?.toLowerCase() === "websocket" && method === "GET") return WEBSOCKET;
  if (stream.switchProtocols === undefined)
    return none("the engine of the listener passes no other upgrade than a WebSocket by GET");
  if (stream.httpVersion !== "1.1") return none("only HTTP/1.1 has upgrades");
  if (service.isHttp2) return none("the targets speak HTTP/2, which has no upgrades");
  if (upstreamMethod !== "GET" && upstreamMethod !== "POST")
    return none("only GET and POST requests are upgraded");
  const passed = asked.filter(
    (name) =>
      isAllowed(name) && isUpgradeProtocol(name) && !carriesHttp(name) && !isWebSocket(name),
  );
  if (passed.length === 0) return none("the gateway passes none of the protocols in Upgrade");
  return { kind: "other", protocols: passed.join(", ") };
}

/** They have a handshake of their own. */
const isWebSocket = (protocol: string) => /^websocket(?:\/|$)/i.test(protocol);
