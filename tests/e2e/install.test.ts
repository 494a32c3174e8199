// The installer in its own directory tree: checksums, upgrades, rollback when a version fails, and removal.
import { expect } from "bun:test";
import {
  chmodSync,
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
import { join, resolve } from "node:path";
import { Database } from "bun:sqlite";
import { selfSigned } from "../support/certificate.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { needs, pathOf } from "../support/needs.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterEach, describe, test } = needs("executable");

const installer = resolve(import.meta.dir, "../../scripts/install.sh");
const target = `linux-${process.arch === "arm64" ? "arm64" : "x64"}`;
const sumOf = (path: string) =>
  new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");

const cleanups = cleanupsOf(afterEach);
/** Replaces systemd: starts and stops the program of the unit file, with its environment. */
const SYSTEMCTL = `#!/bin/sh
unit=$SCENE/root/etc/systemd/system/sluice.service
echo "$*" >>"$SCENE/systemctl.log"
stop() {
  [ -f "$SCENE/pid" ] || return 0
  # One that has taken over is the main process now; here its name is in the data directory, systemd is told.
  for pid in $(cat "$SCENE/root/var/lib/sluice/sluice.pid") $(cat "$SCENE/pid"); do
    kill "$pid" 2>/dev/null
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  done
  rm -f "$SCENE/pid"
}
start() {
  set -a; . "$SCENE/root$(sed -n 's/^EnvironmentFile=//p' "$unit")"; set +a
  program=$(sed -n 's/^ExecStart=//p' "$unit" | cut -d ' ' -f 1)
  SLUICE_WORKERS=1 "$SCENE/root$program" serve --data-dir "$SCENE/root/var/lib/sluice" >>"$SCENE/journal" 2>&1 &
  echo $! >"$SCENE/pid"
}
case $1 in
  enable) start ;;
  start) start ;;
  restart) stop; start ;;
  stop | disable) stop ;;
esac
`;

interface Scene {
  readonly path: string;
  readonly root: string;
  readonly bin: string;
  readonly data: string;
  readonly admin: string;
  /** The installer with `--root`; `words` are added. */
  run(...words: string[]): { code: number; text: string };
  /** An executable in a release directory; `text`: a script instead of the real one. */
  release(name: string, text?: string): string;
  systemctl(): string;
}

function createScene(): Scene {
  const path = mkdtempSync(join(tmpdir(), "sluice-install-"));
  const root = join(path, "root");
  const ports = [quietPort(), quietPort(), quietPort()].map((port) => `127.0.0.1:${port}`);
  const [http = "", https = "", admin = ""] = ports;
  mkdirSync(root);
  mkdirSync(join(path, "path"));
  writeFileSync(join(path, "path/systemctl"), SYSTEMCTL, { mode: 0o755 });
  const env = { PATH: `${join(path, "path")}:${process.env["PATH"]}`, SCENE: path, HOME: path };
  cleanups.push(() => {
    Bun.spawnSync([join(path, "path/systemctl"), "stop"], { env });
    rmSync(path, { recursive: true, force: true });
  });
  return {
    path,
    root,
    admin,
    bin: join(root, "usr/local/bin/sluice"),
    data: join(root, "var/lib/sluice"),
    run(...words) {
      const addresses = ["--http", http, "--https", https, "--admin", admin];
      const { exitCode, stdout, stderr } = Bun.spawnSync(
        ["sh", installer, "--root", root, "--target", target, ...addresses, ...words],
        { env },
      );
      return { code: exitCode, text: `${stdout}${stderr}` };
    },
    release(name, text) {
      const folder = join(path, name);
      const file = join(folder, `sluice-${target}`);
      mkdirSync(folder);
      if (text === undefined) copyFileSync(executable, file);
      else writeFileSync(file, text);
      chmodSync(file, 0o755);
      writeFileSync(join(folder, "SHA256SUMS"), `${sumOf(file)}  sluice-${target}\n`);
      return folder;
    },
    systemctl: () => readFileSync(join(path, "systemctl.log"), "utf8"),
  };
}

/** Version 1 as a service of systemd. */
const install = (scene: Scene) =>
  scene.run("--service", "systemd", "--from", scene.release("one", wrapper("1")));

const upgrade = (scene: Scene, name: string, program: string) =>
  scene.run("--service", "systemd", "--upgrade", "--from", scene.release(name, program));

/** A version that prints its number and serves as the real one does. */
const wrapper = (version: string) =>
  `#!/bin/sh\n[ "$1" != version ] || { echo "sluice ${version}"; exit 0; }\nexec "${executable}" "$@"\n`;

describe("without a service", () => {
  test("files have their places, and only the owner can read the data directory", () => {
    const scene = createScene();
    const { code, text } = scene.run("--from", scene.release("one", wrapper("1")));
    expect([code, text]).toEqual([0, expect.stringContaining("installed sluice 1")]);
    expect(statSync(scene.data).mode & 0o777).toBe(0o700);
    expect(statSync(join(scene.root, "etc/sluice/sluice.env")).mode & 0o777).toBe(0o640);
    expect(readFileSync(join(scene.root, "etc/sysctl.d/60-sluice.conf"), "utf8")).toContain(
      "net.ipv4.tcp_migrate_req = 1",
    );
    expect(existsSync(join(scene.root, "etc/systemd"))).toBe(false);
    expect(readdirSync(join(scene.root, "usr/local/bin"))).toEqual(["sluice"]);
  });

  test("a second installation changes nothing and names the upgrade command", () => {
    const scene = createScene();
    scene.run("--from", scene.release("one", wrapper("1")));
    const { code, text } = scene.run("--from", scene.release("two", wrapper("2")));
    expect([code, text]).toEqual([1, expect.stringContaining("--upgrade")]);
    expect(Bun.spawnSync([scene.bin, "version"]).stdout.toString()).toBe("sluice 1\n");
  });

  test.each([
    [
      "a wrong sum in SHA256SUMS",
      (folder: string) => Bun.spawnSync(["sed", "-i", "s/^..../0000/", join(folder, "SHA256SUMS")]),
      [],
      "nothing was changed",
    ],
    [
      "a wrong sum on the command line",
      () => undefined,
      ["--sha256", "0".repeat(64)],
      "nothing was changed",
    ],
    ["no sum at all", (folder: string) => rmSync(join(folder, "SHA256SUMS")), [], "--unchecked"],
    [
      "a program that does not run",
      (folder: string) => writeFileSync(join(folder, `sluice-${target}`), "#!/bin/sh\nexit 1\n"),
      ["--unchecked"],
      "should have",
    ],
    ["another machine's", () => undefined, ["--target", "darwin-arm64"], "there is no"],
  ] as const)("%s is rejected", (_why, spoil, words, problem) => {
    const scene = createScene();
    const folder = scene.release("one", wrapper("1"));
    spoil(folder);
    const { code, text } = scene.run("--from", folder, ...words);
    expect([code, text]).toEqual([1, expect.stringContaining(problem)]);
    expect(existsSync(scene.bin)).toBe(false);
    expect(readdirSync(join(scene.root, "usr/local/bin"))).toEqual([]);
  });

  test.each(["eighty", "0.0.0.0:", ":80", "0.0.0.0:8o", "$(id):80", "a b:80"])(
    "the address %p is rejected before anything is created",
    (address) => {
      const scene = createScene();
      const folder = scene.release("one", wrapper("1"));
      for (const flag of ["--http", "--https", "--admin"])
        expect(scene.run("--from", folder, flag, address)).toMatchObject({
          code: 1,
          text: expect.stringContaining("must be ADDRESS:PORT"),
        });
      expect(existsSync(scene.data)).toBe(false);
    },
  );

  test("a management address that other machines reach requires allowed networks for the settings", () => {
    const scene = createScene();
    const folder = scene.release("one", wrapper("1"));
    const admin = ["--admin", "0.0.0.0:9080"];
    const without = scene.run("--from", folder, ...admin);
    expect([without.code, without.text]).toEqual([1, expect.stringContaining("--admin-allow")]);
    const odd = scene.run("--from", folder, ...admin, "--admin-allow", "$(id)");
    expect([odd.code, odd.text]).toEqual([1, expect.stringContaining("must be CIDR[,CIDR]")]);
    const early = ["--service", "systemd", "--admin-allow", "private"];
    const unused = scene.run("--from", folder, ...admin, ...early);
    expect([unused.code, unused.text]).toEqual([1, expect.stringContaining("needs a user first")]);
    expect(existsSync(scene.bin)).toBe(false);
    const given = scene.run("--from", folder, ...admin, "--admin-allow", "private,192.0.2.0/24");
    expect(given.code).toBe(0);
    const settings = readFileSync(join(scene.root, "etc/sluice/sluice.env"), "utf8");
    expect(settings).toContain(
      "SLUICE_ADMIN=0.0.0.0:9080\nSLUICE_ADMIN_ALLOW=private,192.0.2.0/24\n",
    );
  });

  describe("from a URL", () => {
    /** Servers with a release, one over HTTPS and one without; a path below /away leads from the first to the second. */
    async function servers(scene: Scene, folder: string) {
      const certificate = await selfSigned();
      const authorities = join(scene.path, "authorities.pem");
      writeFileSync(authorities, certificate.cert);
      const asked: string[] = [];
      const start = (tls: object, elsewhere: string) =>
        Bun.serve({
          hostname: "127.0.0.1",
          port: 0,
          ...tls,
          fetch: (request) => {
            const { pathname } = new URL(request.url);
            asked.push(pathname);
            if (pathname.startsWith("/away/"))
              return Response.redirect(elsewhere + pathname.replace("/away", ""), 302);
            return new Response(Bun.file(join(folder, pathname.replace("/v1/", ""))));
          },
        });
      const plain = start({}, "");
      const secure = start({ tls: certificate }, `http://127.0.0.1:${plain.port}`);
      cleanups.push(() => Promise.all([plain.stop(true), secure.stop(true)]));
      const run = async (url: string, path: string | null, ...words: string[]) => {
        const child = Bun.spawn(
          ["sh", installer, "--root", scene.root, "--target", target, ...words],
          {
            env: {
              PATH: path ?? process.env["PATH"] ?? "",
              SLUICE_URL: url,
              CURL_CA_BUNDLE: authorities,
            },
            stdout: "pipe",
            stderr: "pipe",
          },
        );
        const [out, error] = await Promise.all(
          [child.stdout, child.stderr].map((stream) => new Response(stream).text()),
        );
        return { code: await child.exited, text: `${out}${error}` };
      };
      const http = `http://127.0.0.1:${plain.port}/v1/`;
      return { run, asked, http, https: `https://localhost:${secure.port}/v1/` };
    }

    test("over HTTPS, with the published checksum", async () => {
      const scene = createScene();
      const { run, https } = await servers(scene, scene.release("one", wrapper("1")));
      expect(await run(https, null)).toMatchObject({
        code: 0,
        text: expect.stringContaining("installed sluice 1"),
      });
    });

    test("over plain HTTP, only with a checksum on the command line", async () => {
      const scene = createScene();
      const folder = scene.release("one", wrapper("1"));
      const { run, http, asked } = await servers(scene, folder);
      for (const words of [[], ["--unchecked"]])
        expect(await run(http, null, ...words)).toMatchObject({
          code: 1,
          text: expect.stringContaining("must begin with https://, or --sha256"),
        });
      expect(asked).toEqual([]);
      expect(existsSync(scene.data)).toBe(false);
      const sum = sumOf(join(folder, `sluice-${target}`));
      const wrong = await run(
        http,
        null,
        "--sha256",
        sum.replace(/^./, (digit) => (digit === "0" ? "1" : "0")),
      );
      expect(wrong).toMatchObject({
        code: 1,
        text: expect.stringContaining("nothing was changed"),
      });
      expect((await run(http, null, "--sha256", sum.toUpperCase())).code).toBe(0);
    });

    test("a redirect from HTTPS to plain HTTP is not followed", async () => {
      const scene = createScene();
      const { run, https, asked } = await servers(scene, scene.release("one", wrapper("1")));
      const { code, text } = await run(https.replace("/v1/", "/away/v1/"), null);
      expect([code, text]).toEqual([1, expect.stringContaining("could not be fetched")]);
      expect(asked).toEqual([`/away/v1/sluice-${target}`]);
      expect(existsSync(scene.bin)).toBe(false);
    });

    test("wget, which would follow it, is only used with a checksum on the command line", async () => {
      const scene = createScene();
      const { run, https } = await servers(scene, scene.release("one", wrapper("1")));
      const tools = join(scene.path, "tools");
      mkdirSync(tools);
      for (const tool of ["sh", "dirname", "id", "uname", "tr", "wget"])
        symlinkSync(pathOf(tool) ?? "/bin/true", join(tools, tool));
      expect(await run(https, tools)).toMatchObject({
        code: 1,
        text: expect.stringContaining("curl is needed"),
      });
    });

    test.each(["ftp://127.0.0.1/", "file:///tmp/", "127.0.0.1/v1", "HTTP://127.0.0.1/"])(
      "%s is rejected",
      async (url) => {
        const scene = createScene();
        const { run } = await servers(scene, scene.release("one", wrapper("1")));
        expect(await run(url, null, "--sha256", "0".repeat(64))).toMatchObject({
          code: 1,
          text: expect.stringContaining("must begin with https://"),
        });
      },
    );

    test.each(["", "abc", "g".repeat(64), "0".repeat(63)])("the checksum %j is invalid", (sum) => {
      const scene = createScene();
      expect(scene.run("--sha256", sum)).toMatchObject({
        code: 1,
        text: expect.stringContaining("must be 64 hexadecimal digits"),
      });
    });
  });

  test.each([
    ["--data-dir", "/var"],
    ["--data-dir", "relative"],
    ["--data-dir", "/srv/with space"],
    ["--prefix", "/opt/\nExecStart=/bin/evil"],
    ["--purge", "--upgrade"],
    ["--service", "upstart"],
    ["--nonsense", ""],
  ])("%s %j is rejected", (flag, value) => {
    const scene = createScene();
    expect(scene.run(flag, value).code).toBe(1);
    expect(readdirSync(scene.root)).toEqual([]);
  });
});

describe("with a service", () => {
  const create = (scene: Scene, name: string) =>
    fetch(`http://${scene.admin}/api/v1/services`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name }),
    });
  const services = async (scene: Scene) => {
    const response = await fetch(`http://${scene.admin}/api/v1/services`);
    return ((await response.json()) as { name: string }[]).map(({ name }) => name);
  };

  test("it serves when the installer ends, and the next version takes over with its data", async () => {
    const scene = createScene();
    const first = install(scene);
    expect([first.code, first.text]).toEqual([0, expect.stringContaining("the gateway is ready")]);
    expect(scene.systemctl()).toBe("daemon-reload\nenable --now sluice.service\n");
    await create(scene, "kept");
    const { code, text } = upgrade(scene, "two", wrapper("2"));
    expect([code, text]).toEqual([0, expect.stringContaining("replaced sluice 1 by sluice 2")]);
    // A takeover, not a restart.
    expect(text).toMatch(/Process \d+ serves now/);
    expect(scene.systemctl()).not.toContain("restart");
    expect(await services(scene)).toEqual(["kept"]);
    expect(readdirSync(join(scene.data, "backups")).length).toBe(1);
    const back = scene.run("--service", "systemd", "--rollback");
    expect([back.code, back.text]).toEqual([0, expect.stringContaining("went back to sluice 1")]);
    expect(await services(scene)).toEqual(["kept"]);
  });

  test("a version that does not become ready is rolled back", async () => {
    const scene = createScene();
    install(scene);
    await create(scene, "kept");
    const bad =
      '#!/bin/sh\ncase $1 in version) echo "sluice 9";; check) ;; healthcheck) exit 1;; *) exit 1;; esac\n';
    const { code, text } = upgrade(scene, "bad", bad);
    expect([code, text]).toEqual([1, expect.stringContaining("the former version serves again")]);
    expect(Bun.spawnSync([scene.bin, "version"]).stdout.toString()).toBe("sluice 1\n");
    expect(await services(scene)).toEqual(["kept"]);
  });

  test("a database that a failed version has changed is replaced by its backup", async () => {
    const scene = createScene();
    install(scene);
    await create(scene, "kept");
    const migrator = join(scene.path, "migrate.ts");
    writeFileSync(
      migrator,
      `import { Database } from "bun:sqlite"; new Database(${JSON.stringify(join(scene.data, "sluice.db"))}).run("PRAGMA user_version = 999");`,
    );
    const bad = `#!/bin/sh\ncase $1 in version) echo "sluice 9";; check) ;; upgrade) exec "${executable}" "$@";; serve) "${process.execPath}" "${migrator}"; exit 1;; healthcheck) sleep 2; exit 1;; esac\n`;
    const { code, text } = upgrade(scene, "bad", bad);
    expect([code, text]).toEqual([
      1,
      expect.stringContaining("the database is the one from before the upgrade"),
    ]);
    expect(await services(scene)).toEqual(["kept"]);
    const aside = readdirSync(scene.data).find((name) =>
      /^sluice\.db\.newer-\d{8}T\d{6}Z$/.test(name),
    );
    const version = new Database(join(scene.data, aside ?? ""), { readonly: true })
      .query("PRAGMA user_version")
      .get();
    expect(version).toEqual({ user_version: 999 });
  });

  test("a version that cannot serve the stored configuration is never activated", async () => {
    const scene = createScene();
    install(scene);
    const bad =
      '#!/bin/sh\ncase $1 in version) echo "sluice 9";; check) echo "no such plugin"; exit 1;; esac\n';
    const { code, text } = upgrade(scene, "bad", bad);
    expect([code, text]).toEqual([1, expect.stringContaining("no such plugin")]);
    expect(scene.systemctl()).not.toContain("restart");
    expect(await services(scene)).toEqual([]);
  });

  test("removal keeps configuration and data, and a purge does not", () => {
    const scene = createScene();
    install(scene);
    expect(scene.run("--service", "systemd", "--uninstall").code).toBe(0);
    expect(existsSync(scene.bin)).toBe(false);
    expect(existsSync(join(scene.root, "etc/systemd/system/sluice.service"))).toBe(false);
    expect(existsSync(join(scene.root, "etc/sysctl.d/60-sluice.conf"))).toBe(false);
    expect(existsSync(join(scene.data, "sluice.db"))).toBe(true);
    expect(scene.systemctl()).toContain("disable --now sluice.service");
    expect(scene.run("--service", "systemd", "--uninstall", "--purge").code).toBe(0);
    expect(existsSync(scene.data)).toBe(false);
    expect(existsSync(join(scene.root, "etc/sluice"))).toBe(false);
  });
});

test("the unit has one capability only, and allows code generation at run time", () => {
  const unit = Bun.spawnSync(["sh", installer, "--print-unit"]).stdout.toString();
  for (const line of [
    "AmbientCapabilities=CAP_NET_BIND_SERVICE",
    "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
    "NoNewPrivileges=yes",
    "SystemCallFilter=~@clock @cpu-emulation @debug @module @mount @obsolete @raw-io @reboot @swap",
    "ProtectSystem=strict",
    "ReadWritePaths=/var/lib/sluice",
    "LimitNOFILE=1048576",
    "MemoryDenyWriteExecute=no",
    "ExecReload=/usr/local/bin/sluice upgrade --data-dir /var/lib/sluice",
    "NotifyAccess=all",
    "Type=notify",
    "WatchdogSec=30",
    "KillMode=mixed",
    "ExecStart=/usr/local/bin/sluice serve --data-dir /var/lib/sluice",
  ])
    expect(unit.split("\n")).toContain(line);
});

needs("systemd-analyze").test("systemd finds nothing wrong with the unit", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-unit-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "sluice.service");
  // The program of the unit must exist.
  const unit = Bun.spawnSync(["sh", installer, "--print-unit"]).stdout.toString();
  writeFileSync(path, unit.replaceAll("/usr/local/bin/sluice", process.execPath));
  const { exitCode, stderr } = Bun.spawnSync(["systemd-analyze", "verify", "--man=no", path]);
  // It names problems of other units of the machine, too.
  const about = stderr
    .toString()
    .split("\n")
    .filter((line) => line.includes("sluice"));
  expect([exitCode, about]).toEqual([0, []]);
});
