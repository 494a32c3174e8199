// Reasons not to start that the person who starts can do something about; decides nothing about what is served.
import { ApiError, type Issue } from "../model/error.ts";
import { StoreError } from "../store/error.ts";
import { AdminTlsError } from "./admin-tls.ts";
import { formatAddress } from "./flags.ts";
import { isLoopback } from "./loopback.ts";
import { CommandError } from "./management-client.ts";
import type { ServeOptions } from "./serve.ts";

/** A reason not to start that the person who starts can do something about. */
export class StartError extends Error {}

/** Whether the message says all that there is to know. */
export const isExplained = (error: unknown): error is Error =>
  [StartError, StoreError, ApiError, AdminTlsError, CommandError].some(
    (known) => error instanceof known,
  );

/** Throws a StartError for the first of them. */
export function refuse([issue]: readonly Issue[]): void {
  if (issue === undefined) return;
  throw new StartError(issue.path === "" ? issue.message : `${issue.path}: ${issue.message}`);
}

/** Without users everybody who reaches the management API may do everything. */
export function refuseOpenManagement(
  { admin, allowUnauthenticatedRemote }: ServeOptions,
  users: number,
): void {
  if (isLoopback(admin.hostname) || allowUnauthenticatedRemote || users > 0) return;
  throw new StartError(
    `--admin ${formatAddress(admin)} can be reached from other machines, and no user exists yet, so anybody could ` +
      "change the configuration; listen on 127.0.0.1, or give --allow-unauthenticated-remote if another guard is in place",
  );
}
