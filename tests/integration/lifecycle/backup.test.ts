// Copies of the database: made during changes, made of a directory that no gateway serves, refused, and served again.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-backup-"));
const dataDir = join(directory, "data");
const EMAIL = "admin@example.org";
const PASSWORD = "four words make sense";
let gateway: Gateway;
let session: Record<string, string> = {};

const call = async (line: string, body?: unknown, at = gateway) => {
  const [method = "", path = ""] = line.split(" ");
  const response = await at.api(method, `/api/v1${path}`, body, session);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${line}: ${response.status} ${text}`);
  return JSON.parse(text);
};

async function signIn(at: Gateway): Promise<void> {
  const answer = await at.api("POST", "/api/v1/auth/login", { email: EMAIL, password: PASSWORD });
  session = { cookie: answer.headers.get("set-cookie")?.split(";")[0] ?? "" };
}

const backup = (file: string, ...more: string[]) =>
  runCommand(["backup", file, "--data-dir", dataDir, ...more]);

/** Names, sizes and contents, without what only says who is there. */
const stateOf = (path: string) =>
  readdirSync(path)
    .filter((name) => statSync(join(path, name)).isFile())
    .map((name) => `${name} ${Bun.hash(readFileSync(join(path, name)))}`)
    .toSorted();

/** An empty directory with a copy and the key. */
function restored(file: string, name: string, key = join(dataDir, "secret.key")): string {
  const path = join(directory, name);
  mkdirSync(path, { mode: 0o700 });
  copyFileSync(file, join(path, "sluice.db"));
  if (key !== "") copyFileSync(key, join(path, "secret.key"));
  return path;
}

beforeAll(async () => {
  mkdirSync(dataDir, { mode: 0o700 });
  gateway = await startGateway({ dataDir, workers: 1 });
  await gateway.ok("POST", "/api/v1/users", {
    email: EMAIL,
    name: "A",
    role: "admin",
    password: PASSWORD,
  });
  await signIn(gateway);
  await call("POST /secrets", { name: "kept", value: "the value" });
  await call("POST /services", { name: "web", targets: [{ host: "127.0.0.1", port: 9 }] });
  await call("POST /routes", { name: "shop", service_id: "web", hosts: ["shop.test"] });
});
afterAll(async () => {
  await gateway.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe("a backup", () => {
  test("made during changes holds one state, which a gateway started on it serves", async () => {
    let isOver = false;
    let made = 0;
    const changes = (async () => {
      while (!isOver) {
        // Both in one change: a copy between two states would have one of them.
        await call("POST /services", {
          name: `s${made}`,
          targets: [{ host: "127.0.0.1", port: 1000 + made }],
        });
        made++;
      }
    })();
    const files: string[] = [];
    try {
      for (const name of ["one.db", "two.db", "three.db"]) {
        const before = made;
        const file = join(directory, name);
        const { code, stdout, stderr } = await backup(file);
        expect([code, stderr]).toEqual([0, ""]);
        expect(stdout).toMatch(/holds revision \d+, \d+ bytes\./);
        expect(stdout).toMatch(/need the key [0-9a-f]{8}, which is .*secret\.key\./);
        expect(statSync(file).mode & 0o777).toBe(0o600);
        using database = new Database(file, { readonly: true });
        const count = (table: string) =>
          database.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
        const revision = Number(/revision (\d+)/.exec(stdout)?.[1]);
        expect(count("services")).toBe(count("targets"));
        expect(count("services")).toBeGreaterThan(before);
        expect(count("revisions")).toBe(revision);
        files.push(file);
      }
    } finally {
      isOver = true;
      await changes;
    }
    expect(readdirSync(directory).filter((name) => name.endsWith(".part"))).toEqual([]);

    const last = join(directory, "last.db");
    expect((await backup(last)).code).toBe(0);
    const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
    const export_ = await gateway.api("GET", "/api/v1/export?format=yaml", undefined, session);
    const document = await export_.text();
    await gateway.stop();
    const path = restored(last, "restored");
    const other = await startGateway({ dataDir: path, workers: 1 });
    try {
      // The sessions are in it as well.
      const again = await other.api("GET", "/api/v1/export?format=yaml", undefined, session);
      expect(await again.text()).toBe(document);
      const status = await other.ok("GET", "/api/v1/admin/status");
      expect(status.revision).toBe(revision);
      await signIn(other);
      // Writing the value that is there changes nothing, so the revision shows whether it can be read.
      await call("PATCH /secrets/kept", { value: "the value" }, other);
      expect((await other.ok("GET", "/api/v1/admin/status")).revision).toBe(revision);
      const traffic = await fetch(`http://127.0.0.1:${other.httpPort || port(document)}/`, {
        headers: { host: "shop.test" },
      });
      // The route is served; no process listens at its target.
      expect(traffic.status).toBe(502);
    } finally {
      await other.stop();
      await gateway.start();
      await signIn(gateway);
    }
  });

  test("of a directory that no gateway serves changes nothing in it", async () => {
    await gateway.stop();
    const before = stateOf(dataDir);
    const file = join(directory, "idle.db");
    expect((await backup(file)).code).toBe(0);
    expect(stateOf(dataDir)).toEqual(before);
    await gateway.start();
    await gateway.kill9();
    // What was changed last stands in the -wal file alone.
    expect(existsSync(join(dataDir, "sluice.db-wal"))).toBe(true);
    const after = join(directory, "crashed.db");
    expect((await backup(after)).code).toBe(0);
    await gateway.start();
    await signIn(gateway);
    using database = new Database(after, { readonly: true });
    const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
    expect(database.query("SELECT max(revision) AS revision FROM revisions").get()).toEqual({
      revision,
    });
  });

  test("without the key names the missing key and is not served", async () => {
    const file = join(directory, "no-key.db");
    expect((await backup(file)).code).toBe(0);
    const path = restored(file, "without-key", "");
    await expect(startGateway({ dataDir: path, workers: 1 })).rejects.toThrow(
      /stored secrets are encrypted with the key [0-9a-f]{8}/,
    );
  });

  test("replaces a file only with --force, and never the database", async () => {
    const file = join(directory, "taken.db");
    writeFileSync(file, "mine");
    const refused = await backup(file);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain("exists; --force replaces it");
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect((await backup(file, "--force")).code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const own = await backup(join(dataDir, "sluice.db"), "--force");
    expect(own.stderr).toContain("is the database itself");
    const key = readFileSync(join(dataDir, "secret.key"));
    for (const name of ["secret.key", "sluice.db-wal", "control.token", "sluice.pem"]) {
      const link = join(directory, `link to ${name}`);
      symlinkSync(join(dataDir, name), link);
      for (const path of [join(dataDir, name), link])
        expect((await backup(path, "--force")).stderr).toMatch(/is the (database|gateway's own)/);
    }
    expect(readFileSync(join(dataDir, "secret.key"))).toEqual(key);
    expect((await call("GET /services")).length).toBeGreaterThan(0);
  });

  test("says the same as one JSON object on request", async () => {
    const file = join(directory, "as-json.db");
    const { code, stdout } = await backup(file, "--output", "json");
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      {
        file,
        revision: expect.any(Number),
        bytes: statSync(file).size,
        key_ids: [expect.any(String)],
      },
    ]);
  });

  test.each([
    ["of a directory without a database", ["x.db", "--data-dir", "/nowhere"], "no database at"],
    ["into a directory that is not there", ["/nowhere/x.db"], "backup to /nowhere/x.db"],
  ])("%s is refused with a message", async (_, words, message) => {
    const data = words.includes("--data-dir") ? [] : ["--data-dir", dataDir];
    const { code, stderr } = await runCommand(["backup", ...words, ...data], { cwd: directory });
    expect(code).toBe(1);
    expect(stderr).toStartWith("sluice: ");
    expect(stderr).toContain(message);
    expect((await runCommand(["backup"])).code).toBe(2);
  });
});

/** Of the plain listener, as it stands in an export. */
const port = (document: string) =>
  Number(/name: http\n(?:.*\n)*? {4}port: (\d+)/.exec(document)?.[1] ?? 0);
