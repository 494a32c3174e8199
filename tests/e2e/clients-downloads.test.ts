// Programs that fetch files, through the executable in cleartext on each engine: ranges, many connections, pipelining, half-closed ones.
import { describe, expect } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClientScene, clientEngines, startClientScene } from "../support/client-scene.ts";
import { curl } from "../support/curl.ts";
import { lackOf, needs } from "../support/needs.ts";
import { type Nginx, startNginx } from "../support/nginx.ts";

const { afterAll, beforeAll } = needs("executable", "nginx");

const LARGE_BYTES = 20_000_000;
const large = Buffer.alloc(LARGE_BYTES);
for (let at = 0; at < LARGE_BYTES; at += 50_000)
  crypto.getRandomValues(large.subarray(at, at + 50_000));
const digestOf = (bytes: Uint8Array) => Bun.SHA256.hash(bytes, "hex");

/** Packages that apt fetches: as many small ones as make it pipeline. */
const PACKAGES = 25;
const packageOf = (at: number) => ({ name: `piece-${at}`, content: `package ${at}\n`.repeat(500) });
const packages = Array.from({ length: PACKAGES }, (_, at) => packageOf(at));
const index = packages.map(
  ({ name, content }) => `Package: ${name}
Version: 1.0
Architecture: all
Maintainer: You <you@example.com>
Filename: ./${name}_1.0_all.deb
Size: ${content.length}
SHA256: ${digestOf(Buffer.from(content))}
Description: one of many
`,
);

let scene: ClientScene;
let nginx: Nginx;
beforeAll(async () => {
  scene = await startClientScene();
  const film = await makeFilm();
  nginx = await startNginx({
    files: {
      "files/large.bin": large,
      "files/small.txt": "small",
      "files/film.mp4": film,
      "apt/Packages": index.join("\n"),
      ...Object.fromEntries(
        packages.map(({ name, content }) => [`apt/${name}_1.0_all.deb`, content]),
      ),
    },
  });
  for (const path of ["/files", "/apt"]) await scene.route(path, nginx.port);
});
afterAll(async () => {
  await scene?.stop();
  await nginx?.stop();
});

/** Its index is at its end, and its size many times that of one read: a player seeks. */
async function makeFilm(): Promise<Uint8Array> {
  if (lackOf("ffmpeg") !== null) return new Uint8Array(0);
  const path = join(scene.scratch, "film.mp4");
  const source = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=10:duration=12"];
  const coding = ["-c:v", "mpeg4", "-q:v", "1", "-g", "10"];
  await scene.run(["ffmpeg", "-loglevel", "error", ...source, ...coding, path]);
  return readFileSync(path);
}

describe.each(clientEngines)("%s engine:", (engine) => {
  const url = (path: string) => `${scene.url(engine)}${path}`;

  needs("executable", "nginx", "curl").test("curl, several ranges and a resumed file", async () => {
    const path = url("/files/large.bin");
    const part = await curl(path, ["-H", "Range: bytes=1000000-1000099"]);
    const wanted = Buffer.from(large.subarray(1_000_000, 1_000_100));
    expect([part.status, part.header("content-range")]).toEqual([
      206,
      `bytes 1000000-1000099/${LARGE_BYTES}`,
    ]);
    expect(Buffer.from(part.body ?? []).equals(wanted)).toBe(true);
    const file = join(scene.folder("curl"), "large.bin");
    writeFileSync(file, large.subarray(0, 7_654_321));
    await scene.run(["curl", "-sSf", "-C", "-", "-o", file, path]);
    expect(digestOf(readFileSync(file))).toBe(digestOf(large));
    expect((await curl(path, ["--http1.0"])).sha256).toBe(digestOf(large));
    const upgrade = await curl(url("/files/small.txt"), ["--http2"]);
    expect([upgrade.status, upgrade.version, upgrade.text()]).toEqual([200, "1.1", "small"]);
  });

  needs("executable", "nginx", "wget").test("wget, several files on one connection", async () => {
    const folder = scene.folder("wget");
    writeFileSync(join(folder, "large.bin"), large.subarray(0, 5_000_000));
    const files = [url("/files/large.bin"), url("/files/small.txt")];
    const log = await scene.run(["wget", "--continue", ...files], { cwd: folder });
    expect(digestOf(readFileSync(join(folder, "large.bin")))).toBe(digestOf(large));
    expect(readFileSync(join(folder, "small.txt"), "utf8")).toBe("small");
    expect(log).toContain("206 Partial Content");
    // wget does so where it knows a length.
    if (engine === "sluice") expect(log).toContain("Reusing existing connection");
  });

  needs("executable", "nginx", "aria2c").test("aria2c, a file on 16 connections", async () => {
    const folder = scene.folder("aria2");
    const parts = ["-x16", "-s16", "-k1M", "--file-allocation=none", "--no-conf"];
    await scene.run(["aria2c", ...parts, "-d", folder, url("/files/large.bin")]);
    expect(digestOf(readFileSync(join(folder, "large.bin")))).toBe(digestOf(large));
  });

  needs("executable", "nginx", "apt-get").test("apt-get, which pipelines", async () => {
    const folder = scene.folder("apt");
    await fetchPackages(url("/apt"), folder);
    for (const { name, content } of packages)
      expect(readFileSync(join(folder, `${name}_1.0_all.deb`), "utf8")).toBe(content);
  });

  needs("executable", "nginx", "ab").test(
    "ab -k, which keeps connections of HTTP/1.0",
    async () => {
      const count = 2000;
      const words = ["-k", "-q", "-n", String(count), "-c", "20", url("/files/small.txt")];
      const text = await scene.run(["ab", ...words]);
      const number = (name: string) => Number(new RegExp(`^${name}: +(\\d+)`, "m").exec(text)?.[1]);
      expect({
        complete: number("Complete requests"),
        failed: number("Failed requests"),
        kept: number("Keep-Alive requests"),
        bytes: number("HTML transferred"),
      }).toEqual({
        complete: count,
        failed: 0,
        kept: engine === "sluice" ? count : 0,
        bytes: count * "small".length,
      });
    },
  );

  needs("executable", "nginx", "ffmpeg").test("ffmpeg seeks in a film by ranges", async () => {
    const frame = (from: string) =>
      scene.run([
        ...["ffmpeg", "-loglevel", "error", "-ss", "10.5", "-i", from],
        ...["-frames:v", "1", "-f", "framemd5", "-"],
      ]);
    expect(await frame(url("/files/film.mp4"))).toBe(await frame(join(scene.scratch, "film.mp4")));
    const requests = await requestsOf("/files/film.mp4");
    expect(requests.filter((status) => status === 206).length).toBeGreaterThan(1);
  });
});

// Bun.serve closes the connection of such a client.
needs("executable", "nginx", "nc").test("nc -N, which sends FIN behind its request", async () => {
  const request = "GET /files/large.bin HTTP/1.1\r\nHost: a.test\r\n\r\n";
  const file = join(scene.folder("nc"), "out");
  const words = ["sh", "-c", `nc -N 127.0.0.1 ${scene.port("sluice")} > ${file}`];
  await scene.run(words, { input: request });
  const received = readFileSync(file);
  const end = received.indexOf("\r\n\r\n") + 4;
  expect(digestOf(received.subarray(end))).toBe(digestOf(large));
});

const requestsOf = async (path: string) =>
  (
    (await scene.gateway.ok("GET", "/api/v1/requests?limit=50")) as {
      path: string;
      status: number;
    }[]
  )
    .filter((each) => each.path === path)
    .map(({ status }) => status);

/** With lists, keys and caches of its own. */
async function fetchPackages(repository: string, folder: string): Promise<void> {
  for (const name of ["state/lists/partial", "cache/archives/partial", "etc/trusted.gpg.d"])
    mkdirSync(join(folder, name), { recursive: true });
  const sources = join(folder, "etc/sources.list");
  writeFileSync(sources, `deb [trusted=yes] ${repository} ./\n`);
  writeFileSync(join(folder, "status"), "");
  const options = {
    "Dir::State": join(folder, "state"),
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": join(folder, "cache"),
    "Dir::Etc": join(folder, "etc"),
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "-",
    "Dir::Etc::preferencesparts": "-",
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
    "Acquire::http::Proxy": "DIRECT",
    "Acquire::Retries": "0",
  };
  const words = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const apt = (...rest: string[]) =>
    scene.run(["apt-get", "-q", ...words, ...rest], {
      cwd: folder,
      env: { APT_CONFIG: "/dev/null" },
    });
  await apt("update");
  await apt("download", ...packages.map(({ name }) => name));
}
