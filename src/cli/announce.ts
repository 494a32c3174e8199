// Announces that the gateway serves, and where: a few lines on standard output and one log event; knows only its parameters.
import type { FirstAdmin } from "../auth/first-admin.ts";
import type { Log } from "../log.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { formatAddress } from "./flags.ts";

export interface Announcement {
  readonly version: string;
  readonly dataDir: string;
  /** URL of the management API. */
  readonly management: string;
  readonly config: GatewayConfig;
  readonly workers: number;
}

export function announce(announcement: Announcement, log: Log): void {
  const { version, dataDir, management, config, workers } = announcement;
  const docs = `${management}/docs`;
  const listeners = [...config.listeners.values()]
    .filter((listener) => listener.enabled)
    .map(
      ({ protocol, address, port }) =>
        `${protocol}://${formatAddress({ hostname: address, port })}`,
    );
  if (!process.stdout.isTTY) {
    log.info("serving", { version, data_dir: dataDir, management, docs, listeners, workers });
    return;
  }
  const rows = [
    ["data", dataDir],
    ["management", management],
    ["reference", docs],
    ["listeners", listeners.join(", ") || "none"],
    ["workers", String(workers)],
  ] as const;
  const lines = rows.map(([label, text]) => `  ${label.padEnd(12)}${text}`);
  process.stdout.write(`Sluice ${version} is serving\n${lines.join("\n")}\n`);
}

/** A generated password is shown here only: in the message, because fields with passwords are redacted. */
export function announceAdmin({ user, password }: FirstAdmin, log: Log): void {
  const { email } = user;
  if (password === null) log.info("the first admin was created", { email });
  else
    log.warn(
      `the first admin was created with the password ${password} which is not shown again: sign in and change it`,
      { email },
    );
}
