// Warnings about system settings that affect this configuration, one sentence each; changes no setting.
import { readFileSync } from "node:fs";
import type { GatewayConfig } from "../model/gateway-config.ts";

const MIGRATE = "/proc/sys/net/ipv4/tcp_migrate_req";

/** `read` returns the text of a setting; null where it does not exist. */
export function hostWarnings(config: GatewayConfig, read = readSetting): readonly string[] {
  const listensWithTls = [...config.listeners.values()].some(
    ({ enabled, protocol }) => enabled && protocol === "https",
  );
  const mayBeReplaced = [...config.certificates.values()].some(({ enabled }) => enabled);
  if (!listensWithTls || !mayBeReplaced || read(MIGRATE)?.trim() !== "0") return [];
  return [
    "net.ipv4.tcp_migrate_req is 0: when a certificate or an https listener changes, connections that are being established may be reset; sysctl -w net.ipv4.tcp_migrate_req=1 prevents that",
  ];
}

function readSetting(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
