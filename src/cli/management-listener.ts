// Loads the management API and opens its listener; knows no endpoint.
import type { ManagementServer } from "../api/server.ts";
import type { Clock } from "../clock.ts";
import type { ControlPlane } from "../control-plane.ts";
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
  /** CDN-Loop token by which the gateway recognizes its own requests. */
  readonly loopToken: string;
}

/** Retries until the old process has released the port; null: there is none. */
type Retry = ((bind: () => ManagementServer) => Promise<ManagementServer>) | null;

/**
 * Opens the listener. On loopback instead of the configured address, a used port must not stop the traffic: the API uses a
 * free one instead.
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
  /** Whether it listens on loopback instead of the configured address. */
  readonly isHeldBack: boolean;
  readonly log: Log;
}

/** Loads the API while the workers start in their own threads, because it loads slowest. */
export async function loadApi({
  admin,
  adminTls,
  ...options
}: ManagementOptions): Promise<() => ManagementServer> {
  const { createManagementApi, serveManagementApi } = await import("../api/server.ts");
  const startedAt = options.clock.now();
  const boundHost = admin.hostname;
  const api = createManagementApi({
    ...options,
    version,
    startedAt,
    boundHost,
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
