// Reasons not to start that the person who starts can do something about; decides nothing about what is served.
import { ApiError, type Issue } from "../model/error.ts";
import { StoreError } from "../store/error.ts";
import { AdminTlsError } from "./admin-tls.ts";
import { CommandError } from "./management-client.ts";

/** A reason not to start that the person who starts can do something about. */
export class StartError extends Error {}

/** Whether the message says all that there is to know. */
export const isExplained = (error: unknown): error is Error =>
  [StartError, StoreError, ApiError, AdminTlsError, CommandError].some(
    (known) => error instanceof known,
  );

const diskFaults: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "there is no room left for this user",
  EROFS: "it is read-only",
  EIO: "the disk reported an error",
};

/** What a disk that fails in the middle of a start is told as; null: it is something else. */
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
