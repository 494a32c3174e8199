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

/** To be called until the former gateway has let go of the port; null: there is none. */
type Retry = ((bind: () => ManagementServer) => Promise<ManagementServer>) | null;

/**
 * Has the API listen. On loopback instead of its configured address, a port that is taken must not stop the traffic: there
 * it takes a free one.
 */
export async function listen(
  serveApi: () => ManagementServer,
  { retry, management, isHeldBack, log }: ListenOptions,
): Promise<ManagementServer> {
  try {
    return retry === null ? serveApi() : await retry(serveApi);
  } catch (error) {
    if (!isHeldBack || management.port === 0) throw error;
    log.warn("the management API listens on a free port", { error });
    management.port = 0;
    return serveApi();
  }
}

export interface ListenOptions {
  readonly retry: Retry;
  readonly management: { port: number };
  /** Whether it listens on loopback although it was given another address. */
  readonly isHeldBack: boolean;
  readonly log: Log;
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
