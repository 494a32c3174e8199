// HAProxy with one thread, for comparison; each benchmark brings its frontend and backend.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROXY_CORE, type RunningProgram, startProgram } from "./processes.ts";

export function startHaproxyWith(
  folder: string,
  mode: "http" | "tcp",
  rest: string,
): RunningProgram {
  const config = join(folder, "haproxy.cfg");
  writeFileSync(
    config,
    `global
  nbthread 1
  maxconn 4096
defaults
  mode ${mode}
  timeout connect 5s
  timeout client 60s
  timeout server 60s
${rest}`,
  );
  const command = ["haproxy", "-db", "-f", config];
  return startProgram({ command, core: PROXY_CORE, logFile: join(folder, "out.log") });
}
