// Failed sign-ins count after a restart, and the data directory does not say whose they were.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startGateway } from "../../support/gateway.ts";
import { PASSWORD, ROOT } from "./people.ts";

test("who has failed ten times waits after a restart, too", async () => {
  const gateway = await startGateway({ workers: 1 });
  try {
    const logIn = async (email: string, password: string) =>
      (await gateway.api("POST", "/api/v1/auth/login", { email, password })).status;
    await gateway.ok("POST", "/api/v1/users", ROOT);
    const typed = "typed-into-the-wrong-field";
    for (let index = 0; index < 10; index++) expect(await logIn(typed, "wrong")).toBe(401);
    expect(await logIn(ROOT.email, PASSWORD)).toBe(429);
    await gateway.restart();
    expect(await logIn(ROOT.email, PASSWORD)).toBe(429);
    for (const name of readdirSync(gateway.dataDir, { withFileTypes: true }))
      if (name.isFile())
        expect(readFileSync(join(gateway.dataDir, name.name), "latin1")).not.toContain(typed);
  } finally {
    await gateway.stop();
  }
}, 60_000);
