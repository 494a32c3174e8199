// Stores set up as docs/recipes.md describes, with their own clients over TLS: Subversion, a registry of images, S3.
import {
  afterAll as afterAllAlways,
  beforeAll as beforeAllAlways,
  describe,
  expect,
} from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApplication } from "../support/application.ts";
import { runIn } from "../support/client-scene.ts";
import { lackOf, needs } from "../support/needs.ts";
import { writeImage } from "../support/oci-image.ts";
import { startNameProxy, visit } from "../support/public-names.ts";
import {
  blocksOf,
  followRecipe,
  type RecipeGateway,
  startRecipeGateway,
} from "../support/recipes.ts";
import { ACCESS_KEY, type S3Server, SECRET_KEY, startS3 } from "../support/s3-server.ts";

const isPossible = lackOf("executable", "curl") === null;
const scratch = mkdtempSync(join(tmpdir(), "sluice-recipes-stores-"));
const stops: (() => unknown)[] = [() => rmSync(scratch, { recursive: true, force: true })];
let scene: RecipeGateway;
let proxy: Awaited<ReturnType<typeof startNameProxy>>;
beforeAllAlways(async () => {
  if (!isPossible) return;
  scene = await startRecipeGateway();
  stops.push(() => scene.gateway.stop());
  proxy = await startNameProxy(scene.gateway);
  stops.push(() => proxy.stop());
}, 60_000);
afterAllAlways(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const ask = (url: string, ...args: string[]) => visit(scene.gateway, url, args);
const run = (...command: string[]) =>
  runIn(scratch, command, { env: { https_proxy: proxy.url, LC_ALL: "C.UTF-8" } });

describe("Subversion", () => {
  const { test, beforeAll } = needs("executable", "curl", "svn", "apache2", "mod_dav_svn");
  const modules = ["mpm_event", "authz_core", "headers", "dav", "dav_svn"];
  const start = (more: string) =>
    startApplication({
      command: ({ directory }) => [
        ...["sh", "-c"],
        `svnadmin create repository && exec apache2 -X -f ${join(directory, "httpd.conf")}`,
      ],
      files: ({ directory, port }) => ({
        "httpd.conf": `
          ServerRoot ${directory}
          PidFile ${directory}/pid
          ErrorLog ${directory}/errors
          Listen 127.0.0.1:${port}
          ServerName svn.example.com
          ${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join("\n")}
          <Location /project>
            DAV svn
            SVNPath ${directory}/repository
          </Location>
          ${more}\n`,
      }),
      env: () => ({ PATH: `${process.env["PATH"]}:/usr/sbin` }),
    });
  const follow = (upstream: string, name = "svn") =>
    followRecipe("Subversion", scene, {
      "http://10.0.0.45:80": upstream,
      ...(name === "svn"
        ? {}
        : {
            '"name": "svn"': `"name": "${name}"`,
            "svn.example": `${name}.example`,
            "s/svn ": `s/${name} `,
          }),
    });
  beforeAll(async () => {
    const apache = await start(blocksOf("Subversion", "apache"));
    stops.push(() => apache.stop());
    await follow(apache.url);
  });

  const svn = (...args: string[]) => {
    const { hostname, port } = new URL(proxy.url);
    return run(
      ...["svn", "--non-interactive", "--config-dir", join(scratch, "subversion")],
      ...["--trust-server-cert-failures", "unknown-ca,cn-mismatch,expired,not-yet-valid,other"],
      ...["--config-option", `servers:global:http-proxy-host=${hostname}`],
      ...["--config-option", `servers:global:http-proxy-port=${port}`],
      ...args,
    );
  };
  const url = "https://svn.example.com/project";

  test("a file of 20 MB is committed, and copied and moved within the server", async () => {
    await svn("mkdir", `${url}/trunk`, `${url}/tags`, "-m", "folders");
    const [work, again] = [join(scratch, "work"), join(scratch, "again")];
    await svn("checkout", `${url}/trunk`, work);
    const content = randomBytes(20_000_000);
    writeFileSync(join(work, "ümläut & more.bin"), content);
    await svn("add", join(work, "ümläut & more.bin"));
    await svn("commit", work, "-m", "a large file");
    await svn("copy", `${url}/trunk`, `${url}/tags/1.0`, "-m", "a tag");
    await svn("move", `${url}/tags/1.0`, `${url}/tags/one point null`, "-m", "a better name");
    await svn("checkout", `${url}/tags/one point null`, again);
    const copied = await Bun.file(join(again, "ümläut & more.bin")).bytes();
    expect(Buffer.from(copied).equals(content)).toBe(true);
    expect(await svn("log", "--quiet", url)).toContain("r4");
  });

  test("it refuses copies without the line of the recipe, and commits nevertheless", async () => {
    const bare = await start("");
    stops.push(() => bare.stop());
    await follow(bare.url, "bare");
    const there = "https://bare.example.com/project";
    await svn("mkdir", `${there}/trunk`, "-m", "a folder");
    await expect(svn("copy", `${there}/trunk`, `${there}/tag`, "-m", "a tag")).rejects.toThrow(
      /502/,
    );
  });
});

describe("Docker registry", () => {
  const { test, beforeAll } = needs("executable", "curl", "skopeo", "docker-registry");
  const user = { name: "you", password: "a password" };
  beforeAll(async () => {
    const hash = await Bun.password.hash(user.password, { algorithm: "bcrypt", cost: 4 });
    const registry = await startApplication({
      command: ({ directory }) => ["docker-registry", "serve", join(directory, "config.yml")],
      files: ({ directory, port }) => ({
        htpasswd: `${user.name}:${hash}\n`,
        "config.yml": `version: 0.1
storage: { filesystem: { rootdirectory: ${directory}/images } }
http: { addr: "127.0.0.1:${port}" }
${blocksOf("Docker registry", "yaml").replace("/etc/docker/registry/htpasswd", `${directory}/htpasswd`)}`,
      }),
    });
    stops.push(() => registry.stop());
    await followRecipe("Docker registry", scene, { "http://10.0.0.46:5000": registry.url });
  });
  const place = "docker://registry.example.com/you/image:1.0";
  const copy = (from: string, to: string, credentials = `${user.name}:${user.password}`) =>
    run(
      ...["skopeo", "--insecure-policy", "copy", "--preserve-digests"],
      ...(from.startsWith("docker:")
        ? ["--src-tls-verify=false", "--src-creds", credentials]
        : ["--dest-tls-verify=false", "--dest-creds", credentials]),
      ...[from, to],
    );

  test("skopeo pushes an image, and pulls the same", async () => {
    const digest = writeImage(join(scratch, "pushed"));
    await copy(`oci:${scratch}/pushed:1.0`, place);
    await copy(place, `oci:${scratch}/pulled:1.0`);
    const pulled = await Bun.file(join(scratch, "pulled/index.json")).json();
    expect(pulled.manifests[0].digest).toBe(digest);
  });

  test("a wrong password is rejected, and the address of an upload is the public one", async () => {
    await expect(copy(place, `oci:${scratch}/never:1.0`, "you:wrong")).rejects.toThrow(
      /unauthorized|authentication required/,
    );
    const { status, header } = await ask(
      "https://registry.example.com/v2/you/image/blobs/uploads/",
      ...["-X", "POST", "--user", `${user.name}:${user.password}`],
    );
    expect(status).toBe(202);
    expect(header("location")).toStartWith("https://registry.example.com/v2/you/image/blobs/");
  });
});

describe("MinIO", () => {
  const { test, beforeAll } = needs("executable", "curl", "rclone");
  let server: S3Server;
  beforeAll(async () => {
    server = startS3();
    stops.push(() => server.stop());
    await followRecipe("MinIO", scene, {
      "http://10.0.0.47:9000": server.url,
      "http://10.0.0.47:9001": server.url,
    });
  });
  const remote = (path: string) =>
    `:s3,provider=Minio,access_key_id=${ACCESS_KEY},secret_access_key='${SECRET_KEY}',endpoint='https://s3.example.com',no_check_bucket=true:${path}`;
  const rclone = (...args: string[]) =>
    run("rclone", "--no-check-certificate", "--config", join(scratch, "rclone.conf"), ...args);

  test("rclone stores objects with any name, in one request and in parts, and gets them back", async () => {
    const contents = {
      "a +b~c'(d)!*&=?.txt": randomBytes(1000),
      "ümläut.bin": randomBytes(12_000_000),
    };
    for (const [name, content] of Object.entries(contents)) {
      writeFileSync(join(scratch, name), content);
      await rclone(
        ...["copyto", join(scratch, name), remote(`bucket/one/${name}`)],
        ...["--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M"],
      );
      expect(Buffer.from(server.objects.get(`bucket/one/${name}`) ?? []).equals(content)).toBe(
        true,
      );
      await rclone("copyto", remote(`bucket/one/${name}`), join(scratch, `back-${name}`));
      expect(
        Buffer.from(await Bun.file(join(scratch, `back-${name}`)).bytes()).equals(content),
      ).toBe(true);
    }
    expect(server.joined()).toBe(1);
  });

  test.each(["--http1.1", "--http2"])("a shared link works with curl (%s)", async (version) => {
    server.objects.set("bucket/shared + 1.txt", Buffer.from("shared"));
    const [link = ""] = (await rclone("link", remote("bucket/shared + 1.txt"))).split("\n");
    const { status, text } = await ask(link, version);
    expect([link.split("/")[2], status, text()]).toEqual(["s3.example.com", 200, "shared"]);
    expect((await ask(link.replace("shared", "other"), version)).status).toBe(403);
  });

  test("a gateway that sends the target's Host gets 403", async () => {
    const { gateway, token } = scene;
    const set = (host_header: string) =>
      gateway.api(
        "PATCH",
        "/api/v1/services/s3",
        { host_header },
        { authorization: `Bearer ${token}` },
      );
    expect((await set("target")).status).toBe(200);
    await expect(
      rclone("cat", remote("bucket/shared + 1.txt"), "--low-level-retries", "1", "--retries", "1"),
    ).rejects.toThrow(/403|Forbidden/);
    expect((await set("preserve")).status).toBe(200);
    expect(await rclone("cat", remote("bucket/shared + 1.txt"))).toContain("shared");
  });
});
