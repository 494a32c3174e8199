// Errors of plugins from a directory that reach no handler, such as those of a promise that nothing waits for; knows no request.
import { placeOf } from "../../pdk/plugin-code.ts";
import type { LogLine } from "../data-plane.ts";

/**
 * Logs such errors of plugins in the place of ending the worker, which would close the connections of all clients. Other errors
 * still end it: it may be broken.
 */
export function surviveStrayErrors(log: LogLine): void {
  const judge = (error: unknown) => {
    const message = error instanceof Error ? error.message : String(error);
    const place = placeOf(error);
    if (place !== null) {
      log("warn", "a plugin failed outside of its handlers", { error: `${message} (${place})` });
      return;
    }
    log("error", "the worker failed", { error });
    // In the next turn, after the log line is sent.
    setTimeout(() => process.exit(1));
  };
  process.on("unhandledRejection", judge);
  process.on("uncaughtException", judge);
}
