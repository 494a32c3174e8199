// Status and log warn of a kernel setting that would lose connections, once there is a certificate to replace.
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../../support/gateway.ts";

const SETTING = "/proc/sys/net/ipv4/tcp_migrate_req";
const dataDir = mkdtempSync(join(tmpdir(), "sluice-warnings-"));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

test("the warning appears with the first certificate, and in the log of the next start", async () => {
  const isOff = existsSync(SETTING) && readFileSync(SETTING, "utf8").trim() === "0";
  const wanted = isOff ? [expect.stringContaining("tcp_migrate_req")] : [];
  const gateway = await startGateway({ dataDir });
  try {
    const warnings = async () => (await gateway.ok("GET", "/api/v1/admin/status")).warnings;
    const bun = { engine: "bun", max_header_bytes: null };
    await gateway.ok("PATCH", "/api/v1/listeners/https", bun);
    expect(await warnings()).toEqual([]);
    const made = { name: "own", source: "self_signed", domains: ["own.test"] };
    await gateway.ok("POST", "/api/v1/certificates", made);
    expect(await warnings()).toEqual(wanted);
    const told = () => gateway.log.filter(({ message }) => message.includes("tcp_migrate_req"));
    expect(told()).toEqual([]);
    await gateway.restart();
    expect(told().map(({ message }) => message)).toEqual(wanted);
  } finally {
    await gateway.stop();
  }
});
