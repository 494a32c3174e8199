// A management address that other machines reach, on real sockets: refused at a new start, held back on loopback later, restricted always.
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import {
  type Gateway,
  type GatewayOptions,
  runCommand,
  startGateway,
} from "../../support/gateway.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { lackOf, needs } from "../../support/needs.ts";
import { ownAddress } from "../../support/own-address.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { connectRaw, parseResponse } from "../../support/raw-http.ts";

const OPEN = "--allow-unauthenticated-remote";
const ROOT = { email: "root@example.org", name: "Root", role: "admin", password: "correct horse" };
const SETTINGS = "/api/v1/settings";
/** Where requests come from that are sent to it; null: this machine has only loopback. */
const other = ownAddress("IPv4");
const hasOther = other !== null;
const { test: testElsewhere } = needs("another address");
const { test: testIpv6 } = needs("ipv6");
const hasIpv6 = lackOf("ipv6") === null;

const cleanups = cleanupsOf(afterEach);

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-restriction-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function started(options: GatewayOptions): Promise<Gateway> {
  const gateway = await startGateway({ workers: 1, ...options });
  cleanups.push(() => gateway.stop());
  return onLoopback(gateway);
}

/** What listens on all addresses is asked on loopback. */
function onLoopback(gateway: Gateway): Gateway {
  gateway.admin = gateway.admin.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
  return gateway;
}

const portOf = (gateway: Gateway) => Number(new URL(gateway.admin).port);
const remote = (allow: string, admin = "0.0.0.0:0") => ["--admin", admin, "--admin-allow", allow];
const statusOf = async (gateway: Gateway) => await gateway.ok("GET", "/api/v1/admin/status");
const warningsIn = (gateway: Gateway) =>
  gateway.log.filter(({ level }) => level === "warn").map(({ message }) => message);

/** The status that a client at another address than loopback gets. */
async function fromElsewhere(
  gateway: Gateway,
  { path = SETTINGS, head = "" } = {},
): Promise<number> {
  const client = await connectRaw({ port: portOf(gateway), hostname: other ?? "" });
  client.write(`GET ${path} HTTP/1.1\r\nHost: ${other}\r\n${head}Connection: close\r\n\r\n`);
  return parseResponse(await client.untilClosed()).status;
}

describe("a new start", () => {
  test.each(["0.0.0.0:0", "[::]:0", `${other ?? "192.0.2.1"}:0`])(
    "at %s is refused without networks, and leaves nothing behind",
    async (admin) => {
      const dataDir = join(directory(), "data");
      for (const words of [[], [OPEN]]) {
        const result = await runCommand([
          "serve",
          "--data-dir",
          dataDir,
          "--admin",
          admin,
          ...words,
        ]);
        expect(result.code).toBe(1);
        expect(result.stderr).toContain("--admin-allow");
        expect(result.stderr).toContain("CIDR[,CIDR], private (RFC 1918, ULA and loopback) or any");
        expect(existsSync(dataDir)).toBe(false);
      }
    },
  );

  test("is one, too, after a first start that failed before it served anything", async () => {
    const dataDir = directory();
    using holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const words = ["serve", "--data-dir", dataDir, "--https", "127.0.0.1:0"];
    const taken = ["--admin", "127.0.0.1:0", "--http", `127.0.0.1:${holder.port}`];
    expect((await runCommand([...words, ...taken])).code).toBe(1);
    expect(existsSync(join(dataDir, "sluice.db"))).toBe(true);
    const free = ["--http", "127.0.0.1:0", "--admin", "0.0.0.0:0", OPEN];
    const result = await runCommand([...words, ...free]);
    expect([result.code, result.stderr.includes("--admin-allow")]).toEqual([1, true]);
  });

  testElsewhere("serves the networks of --admin-allow and nobody else", async () => {
    const gateway = await started({ args: [...remote("127.0.0.0/8"), OPEN] });
    expect(await statusOf(gateway)).toMatchObject({ management_access: "restricted" });
    expect((await gateway.ok("GET", SETTINGS)).admin_allowed_in_force).toEqual(["127.0.0.0/8"]);
    const claims = [
      ...["", "X-Forwarded-For: 127.0.0.1\r\n", "Forwarded: for=127.0.0.1\r\n"],
      "X-Real-IP: 127.0.0.1\r\n",
    ];
    for (const path of [SETTINGS, "/", "/docs", "/openapi.yaml", "/metrics", "/readyz", "/nope"])
      for (const head of claims)
        expect([path, await fromElsewhere(gateway, { path, head })]).toEqual([path, 403]);
    expect(await fromElsewhere(gateway, { path: "/healthz" })).toBe(200);
    expect(warningsIn(gateway).join()).not.toContain("every address");
  });

  testElsewhere("takes any for everybody, and warns in log and status", async () => {
    const gateway = await started({
      env: { SLUICE_ADMIN_ALLOW: "any" },
      args: ["--admin", "0.0.0.0:0", OPEN],
    });
    expect(await fromElsewhere(gateway)).toBe(200);
    const { management_access: access, warnings } = await statusOf(gateway);
    expect(access).toBe("any");
    expect(warnings).toEqual([expect.stringContaining("every address may use the management API")]);
    expect(warningsIn(gateway)).toContain(warnings[0]);
  });

  testIpv6("sees IPv4 clients of an IPv6 listener as what they are", async () => {
    const gateway = await started({ args: [...remote("127.0.0.0/8", "[::]:0"), OPEN] });
    const port = portOf(gateway);
    expect((await fetch(`http://127.0.0.1:${port}${SETTINGS}`)).status).toBe(200);
    expect((await fetch(`http://[::1]:${port}${SETTINGS}`)).status).toBe(403);
    // What sluice healthcheck asks is answered on the machine itself, whatever networks are named.
    expect((await fetch(`http://[::1]:${port}/readyz`)).status).toBe(200);
    const check = await runCommand(["healthcheck", "--admin", `[::]:${port}`]);
    expect([check.code, check.stdout]).toEqual([0, "ready\n"]);
  });

  test("follows a file that names the networks", async () => {
    const file = join(directory(), "gateway.yaml");
    const write = (networks: string) =>
      writeFileSync(file, `format: 1\nsettings: { admin_allowed_cidrs: [${networks}] }\n`);
    write("127.0.0.0/8");
    const args = ["--admin", "0.0.0.0:0", "--config", file, OPEN];
    const gateway = await started({ args });
    expect(await statusOf(gateway)).toMatchObject({ management_access: "restricted" });
    write("");
    const refused = "the configuration file was not applied";
    await eventually(() => gateway.log.some(({ message }) => message === refused));
    const line = gateway.log.find(({ message }) => message === refused);
    expect(line?.["error"]).toContain("settings.admin_allowed_cidrs: must hold a network");
    expect((await gateway.ok("GET", SETTINGS)).admin_allowed_cidrs).toEqual(["127.0.0.0/8"]);
    // The next start serves what the file says, and holds the management API back.
    await gateway.restart(args);
    expect(new URL(gateway.admin).hostname).toBe("127.0.0.1");
    expect(await statusOf(gateway)).toMatchObject({ management_access: "held_back" });
    expect((await gateway.ok("GET", SETTINGS)).admin_allowed_cidrs).toEqual([]);
  });
});

describe("an existing data directory", () => {
  /** Serves a route, has a user and listens on loopback. */
  async function inUse() {
    const origin = startOrigin({ answer: reply("served") });
    cleanups.push(() => origin.stop());
    const gateway = await started({});
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await gateway.ok("POST", "/api/v1/services", { name: "app", targets });
    await gateway.ok("POST", "/api/v1/routes", { name: "app", service_id: "app" });
    const { httpPort } = gateway;
    const { token } = await gateway.ok("POST", "/api/v1/admin/token");
    await gateway.ok("POST", "/api/v1/users", ROOT);
    return {
      gateway,
      traffic: async () => await (await fetch(`http://127.0.0.1:${httpPort}/`)).text(),
      asAdmin: (method: string, path: string, body?: unknown) =>
        gateway.api(method, path, body, { authorization: `Bearer ${token}` }),
    };
  }

  test("serves, with the management API on loopback only, and logs it", async () => {
    const { gateway, traffic, asAdmin } = await inUse();
    const port = quietPort();
    const addresses = ["0.0.0.0", ...(hasIpv6 ? ["[::]"] : []), ...(hasOther ? [other] : [])];
    for (const admin of addresses.map((address) => `${address}:${port}`)) {
      await gateway.restart(["--admin", admin]);
      expect(await traffic()).toBe("served");
      const { hostname } = new URL(gateway.admin);
      expect(hostname).toBe(admin.startsWith("[") ? "[::1]" : "127.0.0.1");
      expect(portOf(gateway)).toBe(port);
      const { management_access: access, warnings } = await statusOf(gateway);
      expect(access).toBe("held_back");
      expect(warnings).toEqual([expect.stringContaining("start with --admin-allow NETWORKS")]);
      expect(warningsIn(gateway)).toContain(warnings[0]);
      if (hasOther) await expect(fromElsewhere(gateway)).rejects.toThrow();
      const check = await runCommand(["healthcheck", "--admin", admin]);
      expect([admin, check.code]).toEqual([admin, 0]);
    }
    // What it lacks can be given there, and holds from the next start on.
    const given = await asAdmin("PATCH", SETTINGS, { admin_allowed_cidrs: ["127.0.0.0/8"] });
    expect(given.status).toBe(200);
    await gateway.restart(["--admin", "0.0.0.0:0"]);
    expect(new URL(gateway.admin).hostname).toBe("0.0.0.0");
    expect(await statusOf(onLoopback(gateway))).toMatchObject({ management_access: "restricted" });
  });

  testElsewhere("listens where it is told once networks are given", async () => {
    const { gateway } = await inUse();
    await gateway.restart(remote(`127.0.0.1,${other}`));
    onLoopback(gateway);
    expect(await fromElsewhere(gateway)).toBe(401);
    await gateway.restart(remote("127.0.0.1"));
    expect(await fromElsewhere(onLoopback(gateway))).toBe(403);
  });

  test("without users is restricted as well, until configured otherwise", async () => {
    const gateway = await started({});
    await gateway.restart(remote("private"));
    expect(new URL(gateway.admin).hostname).toBe("127.0.0.1");
    const { warnings } = await statusOf(gateway);
    expect(warnings).toEqual([expect.stringContaining("no user exists")]);
    await gateway.restart([...remote("private"), OPEN]);
    expect(new URL(gateway.admin).hostname).toBe("0.0.0.0");
  });

  test("serves even if the port on loopback is in use, with the management API at a free one", async () => {
    const { gateway, traffic } = await inUse();
    using holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const admin = `${other ?? "0.0.0.0"}:${holder.port}`;
    await gateway.restart(["--admin", admin]);
    expect(await traffic()).toBe("served");
    expect(portOf(gateway)).not.toBe(holder.port);
    expect(warningsIn(gateway)).toContain("the management API listens on a free port");
    // No target may be the management API, wherever it listens.
    expect((await gateway.api("GET", "/api/v1/services")).status).toBe(401);
  });

  test("is restricted by a process that takes over, too, at the same port", async () => {
    const { gateway, traffic } = await inUse();
    const port = quietPort();
    await gateway.restart(["--admin", `0.0.0.0:${port}`]);
    const { dataDir } = gateway;
    const { code, stdout, stderr } = await runCommand([
      "upgrade",
      "--data-dir",
      dataDir,
      "--drain",
      "1",
    ]);
    expect([code, stderr]).toEqual([0, ""]);
    const pid = Number(/Process (\d+) serves now/.exec(stdout)?.[1]);
    cleanups.push(async () => {
      process.kill(pid, "SIGTERM");
      await eventually(() => {
        try {
          process.kill(pid, 0);
          return false;
        } catch {
          return true;
        }
      });
    });
    expect(await traffic()).toBe("served");
    expect(portOf(gateway)).toBe(port);
    expect(await statusOf(gateway)).toMatchObject({ management_access: "held_back" });
    if (hasOther) await expect(fromElsewhere(gateway)).rejects.toThrow();
  });
});

describe("a change of the restriction", () => {
  const elsewhere = ["203.0.113.0/24"];
  const shutOut =
    "would lock out 127.0.0.1, the client of this request; ?force=1 makes the change anyway";

  test("that blocks its own caller requires ?force=1, however it is made", async () => {
    const gateway = await started({});
    const settings = { admin_allowed_cidrs: elsewhere };
    const { revision } = await statusOf(gateway);
    const ways: [string, string, object, string][] = [
      ["PATCH", SETTINGS, settings, ""],
      ["PATCH", `${SETTINGS}?dry_run=1`, settings, ""],
      ["PUT", SETTINGS, settings, ""],
      ["PUT", `${SETTINGS}?force=0`, settings, ""],
      ["POST", "/api/v1/import", { format: 1, settings }, "settings."],
      ["POST", "/api/v1/import?mode=replace", { format: 1, settings }, "settings."],
      ["POST", "/api/v1/import?dry_run=1", { format: 1, settings }, "settings."],
    ];
    for (const [method, path, body, prefix] of ways) {
      const response = await gateway.api(method, path, body);
      const { error } = (await response.json()) as { error: string };
      expect([path, response.status]).toEqual([path, 409]);
      expect(error).toStartWith(`${prefix}admin_allowed_cidrs: ${shutOut}`);
    }
    expect((await statusOf(gateway)).revision).toBe(revision);
    // An invalid network is reported first, and a list that allows the caller needs no force.
    const wrong = await gateway.api("PATCH", SETTINGS, { admin_allowed_cidrs: ["x"] });
    expect(wrong.status).toBe(400);
    const good = { admin_allowed_cidrs: [...elsewhere, "127.0.0.1"] };
    await gateway.ok("PATCH", SETTINGS, good);
    // Another change with the list that is there is none of the list.
    await gateway.ok("PATCH", SETTINGS, { debug_headers: true });
    const trial = await gateway.ok("PATCH", `${SETTINGS}?force=1&dry_run=1`, settings);
    expect(trial.admin_allowed_cidrs).toEqual(elsewhere);
    await gateway.ok("PATCH", `${SETTINGS}?force=1`, settings);
    expect((await gateway.api("GET", SETTINGS)).status).toBe(403);
  });

  test("by restoring a revision, or with the command apply, requires it as well", async () => {
    const gateway = await started({});
    await gateway.ok("PATCH", `${SETTINGS}?force=1`, {
      admin_allowed_cidrs: ["127.0.0.0/8", ...elsewhere],
    });
    // A list that lets the caller in only now: the revision before it would not.
    const file = join(directory(), "gateway.yaml");
    writeFileSync(file, `format: 1\nsettings: { admin_allowed_cidrs: [${elsewhere[0]}] }\n`);
    const url = ["--url", gateway.admin];
    for (const command of [["apply"], ["diff"], ["import"]]) {
      const { code, stderr } = await runCommand([...command, file, ...url]);
      expect([command, code, stderr.includes("?force=1")]).toEqual([command, 1, true]);
    }
    const { code } = await runCommand(["diff", file, ...url, "--force"]);
    expect(code).toBe(0);
    expect((await gateway.api("GET", SETTINGS)).status).toBe(200);
    const applied = await runCommand(["apply", file, ...url, "--force"]);
    expect([applied.code, applied.stdout.includes("1 updated")]).toEqual([0, true]);
    expect((await gateway.api("GET", SETTINGS)).status).toBe(403);
    // Allowed again on the machine itself, which leaves a revision that would block again.
    const { dataDir } = gateway;
    await runCommand(["reset-admin-networks", "--data-dir", dataDir, "--allow", "127.0.0.1"]);
    const { revision } = await statusOf(gateway);
    const restore = `/api/v1/revisions/${revision - 1}/restore`;
    const refused = await gateway.api("POST", restore);
    expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining(shutOut)]);
    expect((await gateway.api("POST", `${restore}?dry_run=1`)).status).toBe(409);
    expect((await gateway.api("POST", `${restore}?force=1`)).status).toBe(200);
    expect((await gateway.api("GET", SETTINGS)).status).toBe(403);
  });

  test("cannot remove it from a public address", async () => {
    const gateway = await started({});
    await gateway.ok("PATCH", SETTINGS, { admin_allowed_cidrs: ["127.0.0.0/8", "::1"] });
    await gateway.restart(["--admin", "0.0.0.0:0", OPEN]);
    onLoopback(gateway);
    expect(await statusOf(gateway)).toMatchObject({ management_access: "restricted" });
    for (const [method, path, body] of [
      ["PATCH", SETTINGS, { admin_allowed_cidrs: [] }],
      ["PATCH", `${SETTINGS}?force=1`, { admin_allowed_cidrs: null }],
      ["PUT", `${SETTINGS}?force=1`, {}],
      ["POST", "/api/v1/import?mode=replace&force=1", { format: 1, settings: {} }],
      ["POST", "/api/v1/revisions/1/restore?force=1", undefined],
    ] as const) {
      const response = await gateway.api(method, path, body);
      expect([path, response.status]).toEqual([path, 409]);
      expect(await response.text()).toContain("admin_allowed_cidrs: must hold a network");
    }
    // All addresses may be named, and that is warned of: in the reply, the log and the status.
    const everybody = { admin_allowed_cidrs: ["0.0.0.0/0", "::/0"] };
    const response = await gateway.api("PATCH", SETTINGS, everybody);
    const warning = response.headers.get("x-warning") ?? "";
    expect(warning).toStartWith("every address may use the management API");
    expect(await statusOf(gateway)).toMatchObject({
      management_access: "any",
      warnings: [warning],
    });
    expect(warningsIn(gateway)).toContain(warning);
  });

  test("may empty the list where --admin-allow names networks, which apply then", async () => {
    const gateway = await started({ args: [...remote("127.0.0.0/8"), OPEN] });
    const set = (networks: readonly string[]) =>
      gateway.ok("PATCH", SETTINGS, { admin_allowed_cidrs: networks });
    expect(await set(["127.0.0.1"])).toMatchObject({ admin_allowed_in_force: ["127.0.0.1"] });
    expect(await set([])).toMatchObject({ admin_allowed_in_force: ["127.0.0.0/8"] });
    await set(["127.0.0.1"]);
    await gateway.restart([...remote("127.0.0.0/8"), OPEN]);
    expect(warningsIn(gateway).join()).toContain("--admin-allow is not in force");
    // What was read can be sent back.
    const read = await onLoopback(gateway).ok("GET", SETTINGS);
    expect(await gateway.ok("PUT", SETTINGS, read)).toEqual(read);
  });

  testElsewhere(
    "refuses the changes of those whom it shuts out, also those under way",
    async () => {
      const gateway = await started({ args: [...remote(`127.0.0.1,${other}`), OPEN] });
      const body = JSON.stringify({ name: "late" });
      const client = await connectRaw({ port: portOf(gateway), hostname: other ?? "" });
      client.write(
        `POST /api/v1/services HTTP/1.1\r\nHost: ${other}\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body.slice(0, 5)}`,
      );
      await fromElsewhere(gateway);
      await gateway.ok("PATCH", SETTINGS, { admin_allowed_cidrs: ["127.0.0.1"] });
      client.write(body.slice(5));
      expect(parseResponse(await client.untilClosed()).status).toBe(403);
      expect(await gateway.ok("GET", "/api/v1/services")).toEqual([]);
    },
  );
});

describe("sluice reset-admin-networks", () => {
  const reset = (gateway: Gateway, ...words: string[]) =>
    runCommand(["reset-admin-networks", "--data-dir", gateway.dataDir, ...words]);
  const stored = async (gateway: Gateway) =>
    (await gateway.ok("GET", SETTINGS)).admin_allowed_cidrs;
  const elsewhere = "203.0.113.0/24";
  const privates = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
    "127.0.0.0/8",
    "::1/128",
  ];

  test("adds private networks where the address needs some, and opens to all only explicitly", async () => {
    const gateway = await started({});
    await gateway.ok("PATCH", `${SETTINGS}?force=1`, { admin_allowed_cidrs: [elsewhere] });
    await gateway.restart(["--admin", "0.0.0.0:0", OPEN]);
    onLoopback(gateway);
    expect((await gateway.api("GET", SETTINGS)).status).toBe(403);
    const bare = await reset(gateway);
    expect([bare.code, bare.stdout]).toEqual([0, `${[elsewhere, ...privates].join("\n")}\n`]);
    expect(bare.stderr).toContain("now, without a restart");
    expect(await stored(gateway)).toEqual([elsewhere, ...privates]);
    await reset(gateway, "--allow", "any");
    expect(await statusOf(gateway)).toMatchObject({ management_access: "any" });
  });

  test("empties the list where --admin-allow names networks, and adds to those", async () => {
    const args = [...remote("127.0.0.0/8"), OPEN];
    const gateway = await started({ args });
    await gateway.ok("PATCH", `${SETTINGS}?force=1`, { admin_allowed_cidrs: [elsewhere] });
    expect((await reset(gateway)).stdout).toBe("127.0.0.0/8\n");
    expect(await stored(gateway)).toEqual([]);
    expect((await reset(gateway, "--allow", elsewhere)).stdout).toBe(`127.0.0.0/8\n${elsewhere}\n`);
    expect(await stored(gateway)).toEqual(["127.0.0.0/8", elsewhere]);
  });

  test("repairs a gateway that is restricted, from the next start on", async () => {
    const gateway = await started({});
    await gateway.restart(["--admin", "0.0.0.0:0", OPEN]);
    expect(await statusOf(gateway)).toMatchObject({ management_access: "held_back" });
    const given = await reset(gateway, "--allow", "private");
    expect([given.code, given.stdout]).toEqual([0, `${privates.join("\n")}\n`]);
    expect(given.stderr).toContain("After a restart");
    await gateway.restart(["--admin", "0.0.0.0:0", OPEN]);
    expect(await statusOf(onLoopback(gateway))).toMatchObject({ management_access: "restricted" });
  });
});
