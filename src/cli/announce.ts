// Announces that the gateway serves, and where: a few lines on standard output and one log event; knows only its parameters.
import type { FirstAdmin } from "../auth/first-admin.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { Log } from "../log.ts";
import { firstSteps } from "./first-steps.ts";
import { formatAddress } from "./flags.ts";

export interface Announcement {
  readonly version: string;
  readonly dataDir: string;
  /** URL of the management API. */
  readonly management: string;
  readonly control: Pick<ControlPlane, "changes" | "rolloutStatus">;
  readonly workers: number;
}

export function announce(announcement: Announcement, log: Log): void {
  const { version, dataDir, management, control, workers } = announcement;
  const { config } = control.changes;
  const { unbound = [] } = control.rolloutStatus();
  const docs = `${management}/docs`;
  const isUnbound = (id: string) =>
    unbound.some((port) => port.id === id && port.transport === "tcp");
  const served = [...config.listeners.values()].filter(
    ({ id, enabled }) => enabled && !isUnbound(id),
  );
  const listeners = served.map(
    ({ protocol, address, port }) => `${protocol}://${formatAddress({ hostname: address, port })}`,
  );
  // Set by `make run`.
  if (process.env["SLUICE_FIRST_STEPS"] === "1")
    process.stdout.write(firstSteps(management, served));
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
