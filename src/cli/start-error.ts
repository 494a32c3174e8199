// Start errors that the operator can fix; decides nothing about what is served.
import { ApiError, type Issue } from "../model/error.ts";
import { StoreError } from "../store/error.ts";
import { AdminTlsError } from "./admin-tls.ts";
import { CommandError } from "./management-client.ts";

/** A start error that the operator can fix. */
export class StartError extends Error {}

/** Whether the message is complete without a stack trace. */
export const isExplained = (error: unknown): error is Error =>
  [StartError, StoreError, ApiError, AdminTlsError, CommandError].some(
    (known) => error instanceof known,
  );

const diskFaults: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota of this user is exhausted",
  EROFS: "it is read-only",
  EIO: "the disk reported an error",
};

/** The message for a disk that fails during the start; null: another error. */
export function diskProblem(error: unknown, dataDir: string): string | null {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  const fault = diskFaults[code ?? ""];
  return fault === undefined ? null : `${dataDir} cannot be written: ${fault}`;
}

/** Throws a StartError for the first of them. */
export function refuse([issue]: readonly Issue[]): void {
  if (issue === undefined) return;
  throw new StartError(issue.path === "" ? issue.message : `${issue.path}: ${issue.message}`);
}
