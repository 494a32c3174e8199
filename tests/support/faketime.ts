// The environment of a program whose clock is wrong, by libfaketime.
import { existsSync } from "node:fs";

const LIBRARY = `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/faketime/libfaketimeMT.so.1`;

/** For `needs`. */
export const fakeTime = {
  lacks: existsSync(LIBRARY) ? null : "libfaketime (Debian package faketime)",
};

/** Its clock is wrong by `seconds`; time-outs take as long as ever. */
export const clockOff = (seconds: number): Record<string, string> => ({
  LD_PRELOAD: LIBRARY,
  FAKETIME: `${seconds < 0 ? "" : "+"}${seconds}s`,
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
});

/** Its clock is wrong by what a file says: `-60s`. */
export const changingClock = (path: string): Record<string, string> => ({
  LD_PRELOAD: LIBRARY,
  FAKETIME_TIMESTAMP_FILE: path,
  FAKETIME_NO_CACHE: "1",
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
});
