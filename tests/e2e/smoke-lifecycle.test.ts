// Start, stop and restart, from source and as the executable: files, listening sockets and exit codes.
import { afterEach, describe, expect } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../support/cleanups.ts";
import { type Gateway, program, runCommand, startGateway } from "../support/gateway.ts";
import { listeningAddresses } from "../support/listening.ts";
import { needs } from "../support/needs.ts";
import { reply, startOrigin } from "../support/origin.ts";
import { eventually } from "../support/poll.ts";
import { variants } from "../support/variants.ts";

const cleanups = cleanupsOf(afterEach);

describe.each([...variants])("life $name", ({ binary, needed }) => {
  const { test } = needs(...needed, "linux");

  async function gatewayFor(): Promise<Gateway> {
    const gateway = await startGateway({ binary });
    cleanups.push(() => gateway.stop());
    return gateway;
  }

  test("only the owner can read the data directory, now and after a restart", async () => {
    const gateway = await gatewayFor();
    await gateway.ok("POST", "/api/v1/services", { name: "any" });
    await gateway.restart();
    expect(modeOf(gateway.dataDir)).toBe("700");
    // Bun itself caches below HOME when it runs sources, and tests set HOME to that directory.
    const files = readdirSync(gateway.dataDir).filter((name) => name !== ".bun");
    expect(files).toContain("sluice.db");
    expect(files).toContain("sluice.pem");
    const modes = files.map((name) => [name, modeOf(join(gateway.dataDir, name))]);
    expect(modes).toEqual(files.map((name) => [name, "600"]));
  });

  test("it listens on its three addresses and nowhere else", async () => {
    const gateway = await gatewayFor();
    const { port } = new URL(gateway.admin);
    expect(listeningAddresses(gateway.pid)).toEqual(
      [port, gateway.httpPort, gateway.httpsPort].map((each) => `127.0.0.1:${each}`).sort(),
    );
  });

  needs(...needed, "private network").test(
    "without a flag the management API listens on 127.0.0.1:9080 alone and sites on all addresses",
    async () => {
      const dataDir = mkdtempSync(join(tmpdir(), "sluice-test-"));
      cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
      // In its own network namespace, so that the fixed ports are free and no other process is reachable.
      const child = Bun.spawn(
        [
          ...["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"'],
          ...["sh", ...program(binary), "serve"],
        ],
        {
          cwd: dataDir,
          env: { PATH: process.env["PATH"] ?? "", HOME: dataDir },
          stdio: ["ignore", "ignore", "ignore"],
        },
      );
      cleanups.push(() => {
        child.kill();
        return child.exited;
      });
      const wanted = ["0.0.0.0:8080", "0.0.0.0:8443", "127.0.0.1:9080"];
      await eventually(() => listeningAddresses(child.pid).length >= wanted.length);
      expect(listeningAddresses(child.pid)).toEqual(wanted);
      expect(readdirSync(dataDir)).toContain("data");
    },
  );

  test("the configuration is restored after a restart", async () => {
    const gateway = await gatewayFor();
    const origin = startOrigin({ answer: reply("still here") });
    cleanups.push(() => origin.stop());
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await gateway.ok("POST", "/api/v1/services", { name: "kept", targets, tags: ["x"] });
    await gateway.ok("POST", "/api/v1/routes", { name: "kept", service_id: "kept" });
    await gateway.ok("PATCH", "/api/v1/settings", { debug_headers: true });
    const seen = async () => {
      const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
      const paths = ["services", "targets", "routes", "listeners", "settings"];
      return [
        revision,
        ...(await Promise.all(paths.map((p) => gateway.ok("GET", `/api/v1/${p}`)))),
      ];
    };
    const before = await seen();
    const certificate = await Bun.file(join(gateway.dataDir, "sluice.pem")).text();
    await gateway.restart();
    expect(await seen()).toEqual(before);
    expect(await Bun.file(join(gateway.dataDir, "sluice.pem")).text()).toBe(certificate);
    for (const base of [
      `http://127.0.0.1:${gateway.httpPort}`,
      `https://127.0.0.1:${gateway.httpsPort}`,
    ])
      expect(await (await fetch(base, { tls: { rejectUnauthorized: false } })).text()).toBe(
        "still here",
      );
  });

  test.each(["SIGTERM", "SIGINT"] as const)("%s ends it with code 0", async (signal) => {
    const gateway = await gatewayFor();
    const { pid } = gateway;
    gateway.signal(signal);
    expect(await gateway.exited()).toBe(0);
    expect(gateway.log.at(-1)?.message).toBe("stopped");
    expect(() => process.kill(pid, 0)).toThrow();
  });

  test("a second process on the directory fails with the id of the first", async () => {
    const gateway = await gatewayFor();
    const second = await runCommand(["serve", "--data-dir", gateway.dataDir, ...freePorts], {
      binary,
    });
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`in use by another sluice (process ${gateway.pid})`);
    expect((await gateway.api("GET", "/readyz")).status).toBe(200);
  });

  test("a public management address without users is rejected with advice", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "sluice-test-"));
    cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
    const args = ["serve", "--data-dir", dataDir, ...freePorts, "--admin", "0.0.0.0:0"];
    const refused = await runCommand(
      args.filter((word) => word !== "--admin=127.0.0.1:0"),
      {
        binary,
      },
    );
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("--admin-allow");
    expect(refused.stderr).toContain("--allow-unauthenticated-remote");
  });

  test("help, version and wrong commands print their output", async () => {
    const version = await runCommand(["version"], { binary });
    expect([version.code, version.stdout]).toEqual([0, expect.stringMatching(/^sluice \d+\.\d+/)]);
    const help = await runCommand(["help"], { binary });
    expect(help.code).toBe(0);
    for (const command of ["serve", "check", "version", "help"])
      expect(help.stdout).toContain(`\n  ${command} `);
    const serve = await runCommand(["help", "serve"], { binary });
    expect(serve.stdout).toContain("(default: 127.0.0.1:9080)");
    const wrong = await runCommand(["srve"], { binary });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"serve"?')]);
  });

  test("check accepts the directory in use, and rejects one without a configuration", async () => {
    const gateway = await gatewayFor();
    await gateway.ok("POST", "/api/v1/services", { name: "any" });
    const good = await runCommand(["check", "--data-dir", gateway.dataDir], { binary });
    expect([good.code, good.stderr]).toEqual([0, ""]);
    const empty = mkdtempSync(join(tmpdir(), "sluice-test-"));
    cleanups.push(() => rmSync(empty, { recursive: true, force: true }));
    const none = await runCommand(["check", "--data-dir", empty], { binary });
    expect(none.code).toBe(1);
    expect(none.stdout + none.stderr).toContain(empty);
    expect(readdirSync(empty)).toEqual([]);
  });
});

const freePorts = ["--admin=127.0.0.1:0", "--http=127.0.0.1:0", "--https=127.0.0.1:0"];

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
