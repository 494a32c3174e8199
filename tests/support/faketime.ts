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
