// What clients of file servers, photo libraries and git need: WebDAV, 5 GiB in one request, ranges, large pushes; with real programs.
import {
  afterAll as afterAllAlways,
  beforeAll as beforeAllAlways,
  describe,
  expect,
} from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApplication } from "../support/application.ts";
import { startGit } from "../support/git-server.ts";
import { lackOf, needs } from "../support/needs.ts";
import { startNginx } from "../support/nginx.ts";
import { startNameProxy, visit } from "../support/public-names.ts";
import { quietPort } from "../support/quiet-port.ts";
import {
  blocksOf,
  followRecipe,
  type RecipeGateway,
  startRecipeGateway,
} from "../support/recipes.ts";
import { peakMemory } from "../integration/promise/big-bodies.ts";

const isPossible = lackOf("executable", "curl") === null;
const scratch = mkdtempSync(join(tmpdir(), "sluice-recipes-transfers-"));
const stops: (() => unknown)[] = [() => rmSync(scratch, { recursive: true, force: true })];
let scene: RecipeGateway;
let proxy: Awaited<ReturnType<typeof startNameProxy>>;
const bunPort = quietPort();
/** The engines that programs are tried on: the default one over TLS, and Bun's in cleartext. */
const engines = [
  ["sluice", "https"],
  ["bun", "http"],
] as const;
beforeAllAlways(async () => {
  if (!isPossible) return;
  scene = await startRecipeGateway();
  stops.push(() => scene.gateway.stop());
  proxy = await startNameProxy(scene.gateway);
  stops.push(() => proxy.stop());
  const bun = { name: "bun", address: "127.0.0.1", port: bunPort, engine: "bun" };
  const authorization = `Bearer ${scene.token}`;
  await scene.gateway.api("POST", "/api/v1/listeners", bun, { authorization });
}, 60_000);
afterAllAlways(async () => {
  for (const stop of stops.toReversed()) await stop();
});

/** The engine counts for URLs in cleartext. */
function ask(url: string, args: readonly string[] = [], engine = "sluice") {
  const { httpsPort, httpPort } = scene.gateway;
  return visit({ httpsPort, httpPort: engine === "bun" ? bunPort : httpPort }, url, args);
}

/** Runs a program with the proxy that knows the public names; throws with its output. */
async function run(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = Bun.spawn([...command], {
    cwd: scratch,
    env: { PATH: process.env["PATH"] ?? "", HOME: scratch, https_proxy: proxy.url, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) {
    const { exitCode, signalCode } = child;
    throw new Error(`${command.join(" ")}: ${signalCode ?? exitCode}: ${out}${errors}`);
  }
  return out;
}

/** Bytes that no compression makes smaller. */
function random(bytes: number): Buffer {
  const made = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += 50_000) crypto.getRandomValues(made.subarray(at, at + 50_000));
  return made;
}

/** Through Apache, or through rclone, which the recipe treats alike. */
function webdavTests(name: string, test: ReturnType<typeof needs>["test"]) {
  const url = `https://${name}.example.com`;

  test("a file is uploaded, moved, copied and deleted", async () => {
    const content = "a file";
    expect((await ask(`${url}/one.txt`, ["-X", "PUT", "--data", content])).status).toBe(201);
    for (const [method, from, to] of [
      ["MOVE", "one.txt", "two%20words.txt"],
      ["COPY", "two%20words.txt", "three.txt"],
    ] as const) {
      const args = ["-X", method, "-H", `Destination: ${url}/${to}`];
      expect((await ask(`${url}/${from}`, args)).status).toBe(201);
    }
    expect((await ask(`${url}/one.txt`)).status).toBe(404);
    expect((await ask(`${url}/three.txt`)).text()).toBe(content);
    expect((await ask(`${url}/three.txt`, ["-X", "DELETE"])).status).toBe(204);
  });

  test("a lock holds until its token is given back", async () => {
    await ask(`${url}/locked.txt`, ["-X", "PUT", "--data", "1"]);
    const body =
      '<?xml version="1.0"?><lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';
    const locked = await ask(`${url}/locked.txt`, [
      ...["-X", "LOCK", "-H", "Timeout: Second-60", "-H", "Content-Type: text/xml", "--data", body],
    ]);
    expect(locked.status).toBe(200);
    const token = locked.header("lock-token") ?? "";
    const put = (args: readonly string[]) =>
      ask(`${url}/locked.txt`, ["-X", "PUT", "--data", "2", ...args]);
    expect((await put([])).status).toBe(423);
    expect([201, 204]).toContain((await put(["-H", `If: (${token})`])).status);
    const unlocked = await ask(`${url}/locked.txt`, ["-X", "UNLOCK", "-H", `Lock-Token: ${token}`]);
    expect(unlocked.status).toBe(204);
    expect([201, 204]).toContain((await put([])).status);
  });

  test("a folder is listed", async () => {
    await ask(`${url}/folder/`, ["-X", "MKCOL"]);
    await ask(`${url}/folder/in.txt`, ["-X", "PUT", "--data", "1"]);
    const { status, text } = await ask(`${url}/folder/`, ["-X", "PROPFIND", "-H", "Depth: 1"]);
    expect([status, text()]).toEqual([207, expect.stringContaining("/folder/in.txt")]);
  });
}

describe("WebDAV of Apache", () => {
  const { test, beforeAll } = needs("executable", "curl", "apache2");
  const modules = ["mpm_event", "authz_core", "headers", "dav", "dav_fs"];
  const configuration = (directory: string, port: number) => `
    ServerRoot ${directory}
    PidFile ${directory}/pid
    ErrorLog ${directory}/errors
    Listen 127.0.0.1:${port}
    ServerName dav.example.com
    ${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join("\n")}
    DocumentRoot ${directory}/files
    DavLockDB ${directory}/locks/db
    <Directory ${directory}/files>
      Dav On
      Require all granted
    </Directory>`;
  const start = (more: string) =>
    startApplication({
      command: ({ directory }) => ["apache2", "-X", "-f", join(directory, "httpd.conf")],
      files: ({ directory, port }) => ({
        "httpd.conf": `${configuration(directory, port)}\n${more}\n`,
        "files/present.txt": "present",
        "locks/empty": "",
      }),
      env: () => ({ PATH: `${process.env["PATH"]}:/usr/sbin` }),
    });
  beforeAll(async () => {
    const apache = await start(blocksOf("WebDAV", "apache"));
    stops.push(() => apache.stop());
    await followRecipe("WebDAV", scene, { "http://10.0.0.17:8080": apache.url });
  });

  webdavTests("dav", test);

  test("it refuses a destination with https without the line of the recipe", async () => {
    const bare = await start("");
    const { status } = await fetch(`${bare.url}/present.txt`, {
      method: "MOVE",
      headers: { host: "dav.example.com", destination: "https://dav.example.com/moved.txt" },
    });
    await bare.stop();
    expect(status).toBe(502);
  });
});

describe("WebDAV of rclone", () => {
  const { test, beforeAll } = needs("executable", "curl", "rclone");
  const remote = (path: string) => `:webdav,url='https://disk.example.com/',vendor=other:${path}`;
  beforeAll(async () => {
    const server = await startApplication({
      command: ({ port, directory }) => [
        ...["rclone", "serve", "webdav", `--addr=127.0.0.1:${port}`, `${directory}/files`],
      ],
      files: () => ({ "files/present.txt": "present" }),
    });
    stops.push(() => server.stop());
    await followRecipe("WebDAV", scene, {
      "http://10.0.0.17:8080": server.url,
      '"name": "dav"': '"name": "disk"',
      "dav.example.com": "disk.example.com",
    });
  });

  webdavTests("disk", test);

  test("rclone as the client syncs a folder, and moves it within the server", async () => {
    const flags = ["--no-check-certificate", "--config", join(scratch, "rclone.conf")];
    const folder = join(scratch, "folder");
    mkdirSync(folder);
    const content = random(20_000_000);
    writeFileSync(join(folder, "a file.bin"), content);
    writeFileSync(join(folder, "ümläut.txt"), "2");
    await run(["rclone", "copy", folder, remote("backup"), ...flags]);
    await run(["rclone", "moveto", remote("backup"), remote("moved"), ...flags]);
    await run(["rclone", "copy", remote("moved"), join(scratch, "back"), ...flags]);
    const back = await Bun.file(join(scratch, "back/a file.bin")).bytes();
    expect(Buffer.from(back).equals(content)).toBe(true);
    expect(await Bun.file(join(scratch, "back/ümläut.txt")).text()).toBe("2");
  });
});

describe("git over HTTP", () => {
  const { test, beforeAll } = needs("executable", "curl", "git");

  const git = (args: readonly string[]) =>
    run(["git", "-c", "http.sslVerify=false", "-c", "core.compression=0", ...args], {
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "You",
      GIT_AUTHOR_EMAIL: "you@example.com",
      GIT_COMMITTER_NAME: "You",
      GIT_COMMITTER_EMAIL: "you@example.com",
    });

  beforeAll(async () => {
    const root = join(scratch, "repositories");
    mkdirSync(root);
    for (const [engine] of engines) {
      const project = join(root, `${engine}.git`);
      await git(["init", "--bare", "--initial-branch=main", project]);
      await git(["-C", project, "config", "http.receivepack", "true"]);
    }
    const server = startGit(root);
    stops.push(() => server.stop(true));
    await followRecipe("Gitea, with SSH", scene, {
      "http://10.0.0.16:3000": `http://127.0.0.1:${server.port}`,
      '"host": "10.0.0.16", "port": 22 ': '"host": "127.0.0.1", "port": 22 ',
      '"listen_port": 2222': `"listen_port": ${quietPort()}`,
    });
  });

  const HOST = "git.example.com";
  const urls = {
    sluice: `https://${HOST}/sluice.git`,
    bun: `http://127.0.0.1:${bunPort}/bun.git`,
  };

  test.each(engines)("a repository of 24 MB is pushed and cloned: %s", async (engine) => {
    const url = urls[engine];
    const [work, again] = [`work-${engine}`, `again-${engine}`];
    const over = (...args: string[]) => git(["-c", `http.extraHeader=Host: ${HOST}`, ...args]);
    await over("clone", url, work);
    writeFileSync(join(scratch, work, "large.bin"), random(24_000_000));
    await git(["-C", work, "checkout", "-B", "main"]);
    await git(["-C", work, "add", "."]);
    await git(["-C", work, "commit", "-qm", "large file"]);
    await over("-C", work, "push", "origin", "main");
    await over("clone", url, again);
    const heads = await Promise.all(
      [work, again].map((name) => git(["-C", name, "rev-parse", "HEAD"])),
    );
    expect(heads[0]).toBe(heads[1] ?? "");
    await git(["-C", again, "fsck", "--full"]);
  });
});

describe("Immich", () => {
  const { test, beforeAll } = needs("executable", "curl");
  const BYTES = 5 * 1024 ** 3;
  /** SHA-256 of as many zeros. */
  const DIGEST = "7f06c62352aebd8125b2a1841e2b9e1ffcbed602f381c3dcb3200200e383d1d5";
  const MOST_MEMORY_MB = 220;

  const film = join(scratch, "film.mp4");
  beforeAll(async () => {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: 0,
      async fetch({ body, headers }) {
        const hash = new Bun.CryptoHasher("sha256");
        let bytes = 0;
        for await (const piece of body ?? []) {
          hash.update(piece);
          bytes += piece.length;
        }
        const declared = headers.get("content-length");
        return Response.json({ bytes, declared, sha256: hash.digest("hex") });
      },
    });
    stops.push(() => server.stop(true));
    await followRecipe("Immich", scene, {
      "http://10.0.0.14:2283": `http://127.0.0.1:${server.port}`,
    });
    writeFileSync(film, "");
    // Sparse: it takes no room on the disk.
    truncateSync(film, BYTES);
  });

  test.each(engines)(
    "5 GiB are uploaded in one request, and the gateway stays small: %s",
    async (engine) => {
      const { status, text } = await ask(
        "http://photos.example.com/api/assets",
        ["-T", film],
        engine,
      );
      expect([status, JSON.parse(text())]).toEqual([
        200,
        { bytes: BYTES, declared: String(BYTES), sha256: DIGEST },
      ]);
      expect(peakMemory(scene.gateway.pid)).toBeLessThan(MOST_MEMORY_MB);
    },
  );
});

describe("Jellyfin", () => {
  const { test, beforeAll } = needs("executable", "curl", "nginx");
  const film = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251));
  beforeAll(async () => {
    const nginx = await startNginx({ files: { "film.mkv": film } });
    stops.push(() => nginx.stop());
    await followRecipe("Jellyfin", scene, {
      "http://10.0.0.13:8096": `http://127.0.0.1:${nginx.port}`,
    });
  });

  describe.each(engines)("%s engine over %s:", (engine, scheme) => {
    const url = `${scheme}://films.example.com/film.mkv`;
    const range = async (value: string, more: readonly string[] = []) =>
      await ask(url, ["-H", `Range: bytes=${value}`, ...more], engine);

    test.each([
      ["0-9", 0, 10],
      ["500-", 500, 99_500],
      ["-100", 99_900, 100],
    ])("bytes=%s", async (value, from, length) => {
      const { status, body, header } = await range(value);
      expect([status, header("content-range")]).toEqual([
        206,
        `bytes ${from}-${from + length - 1}/100000`,
      ]);
      expect(Buffer.from(body ?? []).equals(film.subarray(from, from + length))).toBe(true);
    });

    test("several ranges at once", async () => {
      const { status, text, header } = await range("0-9,500-509");
      const [, boundary = "none"] =
        /^multipart\/byteranges; boundary=(\w+)$/.exec(header("content-type") ?? "") ?? [];
      const parts = text().split(`--${boundary}`).slice(1, -1);
      expect([status, parts.length]).toEqual([206, 2]);
      expect(parts.map((part) => /Content-Range: (.*)\r\n/.exec(part)?.[1])).toEqual([
        "bytes 0-9/100000",
        "bytes 500-509/100000",
      ]);
    });

    test("a range behind the end gets 416 with the length", async () => {
      const { status, header } = await range("100000-");
      expect([status, header("content-range")]).toEqual([416, "bytes */100000"]);
    });

    test("If-Range returns the range of the same film, and all of a changed one", async () => {
      const tag = (await ask(url, ["--head"], engine)).header("etag") ?? "";
      expect((await range("0-9", ["-H", `If-Range: ${tag}`])).status).toBe(206);
      const { status, size } = await range("0-9", ["-H", 'If-Range: "another"']);
      expect([status, size]).toEqual([200, film.length]);
    });
  });
});
