// Warnings about settings of the machine that harm this configuration; changes no setting.
import { readFileSync } from "node:fs";
import type { GatewayConfig } from "../model/gateway-config.ts";

const MIGRATE = "/proc/sys/net/ipv4/tcp_migrate_req";

/** Empty without warnings. `read`: a setting's text; null where the setting does not exist. */
export function hostWarnings(config: GatewayConfig, read = readSetting): readonly string[] {
  // Our own engine binds nothing again.
  const listensWithTls = [...config.listeners.values()].some(
    ({ enabled, protocol, engine }) => enabled && protocol === "https" && engine !== "sluice",
  );
  const mayBeReplaced = [...config.certificates.values()].some(({ enabled }) => enabled);
  if (!listensWithTls || !mayBeReplaced || read(MIGRATE)?.trim() !== "0") return [];
  return [
    "net.ipv4.tcp_migrate_req is 0: when a certificate or an https listener changes, connections in their handshake may be reset; sysctl -w net.ipv4.tcp_migrate_req=1 prevents that",
  ];
}

function readSetting(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
