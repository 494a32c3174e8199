// Loads the management API and listens for it, with the reason in words when that is impossible; knows no endpoint.
import type { ManagementServer } from "../api/server.ts";
import type { Clock } from "../clock.ts";
import type { ControlPlane } from "../control/control-plane.ts";
import type { KeyPair } from "../crypto/x509.ts";
import type { Log } from "../log.ts";
import { type Address, formatAddress } from "./flags.ts";
import { StartError } from "./start-error.ts";
import { version } from "./version.ts";

export interface ManagementOptions {
  readonly control: ControlPlane;
  readonly admin: Address;
  readonly adminTls: KeyPair | null;
  readonly clock: Clock;
  readonly log: Log;
  /** By which the workers of this gateway know their own requests. */
  readonly loopToken: string;
}

/** Loads the API while the workers start in their own threads, because it is the slowest part to load. */
export async function loadApi({
  admin,
  adminTls,
  ...options
}: ManagementOptions): Promise<() => ManagementServer> {
  const { createManagementApi, serveManagementApi } = await import("../api/server.ts");
  const startedAt = options.clock.now();
  const boundHost = admin.hostname;
  const api = createManagementApi({
    ...{ ...options, version, startedAt, boundHost },
    isTls: adminTls !== null,
  });
  return () => {
    try {
      return serveManagementApi(api, { ...admin, ...(adminTls === null ? {} : { tls: adminTls }) });
    } catch (error) {
      const { code, message } = error as { readonly code?: string; readonly message: string };
      const reason = code === "EADDRINUSE" ? "address already in use" : message;
      throw new StartError(`--admin ${formatAddress(admin)}: ${reason}`, { cause: error });
    }
  };
}
