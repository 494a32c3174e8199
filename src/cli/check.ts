// The command `check`: says whether a data directory could be served as it is; changes nothing.
import type { Command } from "./command.ts";

export const checkCommand: Command = {
  name: "check",
  summary: "Check the stored configuration without serving it",
  flags: [],
  run() {
    return Promise.resolve(1);
  },
};
