// Describes the machine that a benchmark ran on, so that figures from two machines are never compared by mistake.
import { readFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";

/** One line per fact. */
export function describeMachine(): string[] {
  const processors = cpus();
  return [
    `Processor: ${processors[0]?.model ?? "unknown"}, ${processors.length} cores`,
    `Memory: ${(totalmem() / 2 ** 30).toFixed(0)} GiB`,
    `System: ${systemName()}, Linux ${release()}`,
    `Bun ${Bun.version}`,
  ];
}

function systemName(): string {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "Linux";
  } catch {
    return "Linux";
  }
}

/** The commit that was measured, marked when the checkout held changes. */
export function describeCommit(): string {
  const commit = Bun.spawnSync(["git", "rev-parse", "--short", "HEAD"]).stdout.toString().trim();
  const changes = Bun.spawnSync(["git", "status", "--porcelain", "--", "src"]).stdout.toString();
  return `${commit || "unknown"}${changes.trim() === "" ? "" : " with changes"}`;
}
