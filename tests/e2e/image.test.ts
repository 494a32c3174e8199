// The container image: its layout, and a container of it without an engine, in namespaces with a read-only root and a user without rights.
import { expect } from "bun:test";
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { needs, pathOf } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/variants.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "skopeo");

const { version } = manifest;
const checkout = resolve(import.meta.dir, "../..");
const scratch = mkdtempSync(join(tmpdir(), "sluice-image-"));
const release = join(scratch, "release");
const layout = join(scratch, "image");
const own = process.arch === "arm64" ? "arm64" : "x64";
const other = own === "x64" ? "arm64" : "x64";
const PASSWORD = "quiet-harbor-lantern";

function run(command: readonly string[], cwd = checkout): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { cwd });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}${stdout}`);
  return stdout.toString();
}

/** Debian removes versions that it has replaced. */
const build = (out: string, words = `--only ${own}`) =>
  run(["make", "--silent", "image", `ARGS=--newest --from ${release} --out ${out} ${words}`]);

interface Blob {
  readonly digest: string;
  readonly size: number;
  readonly mediaType: string;
}

const pathOfBlob = ({ digest }: Blob) => join(layout, "blobs", digest.replace(":", "/"));
// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
const jsonOf = (blob: Blob): any => JSON.parse(readFileSync(pathOfBlob(blob), "utf8"));

function imageOf(architecture: string) {
  const top = JSON.parse(readFileSync(join(layout, "index.json"), "utf8"));
  const index = jsonOf(top.manifests[0]);
  const found = jsonOf(
    index.manifests.find(
      (each: { platform: { architecture: string } }) => each.platform.architecture === architecture,
    ),
  );
  return { manifest: found, config: jsonOf(found.config) };
}

beforeAll(() => {
  mkdirSync(release);
  // What is tested is that each image gets its own executable, so any bytes do for the other architecture.
  writeFileSync(join(release, `sluice-linux-${other}`), "other", { mode: 0o755 });
  symlinkSync(executable, join(release, `sluice-linux-${own}`));
  for (const name of ["LICENSE.txt", "THIRD-PARTY-LICENSES.txt"])
    writeFileSync(join(release, name), name);
  build(layout, "");
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const sumOf = (path: string) =>
  `sha256:${new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex")}`;

describe("the layout", () => {
  test.each([
    ["amd64", "lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu"],
    ["arm64", "lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu"],
  ])("of %s has its digests, its libraries and at most 75 MB", (architecture, loader, triplet) => {
    const { manifest, config } = imageOf(architecture);
    expect([config.architecture, config.os]).toEqual([architecture, "linux"]);
    const blobs: Blob[] = [manifest.config, ...manifest.layers];
    for (const blob of blobs) {
      const bytes = readFileSync(pathOfBlob(blob));
      expect([sumOf(pathOfBlob(blob)), bytes.length]).toEqual([blob.digest, blob.size]);
    }
    const total = blobs.reduce((sum, { size }) => sum + size, 0);
    expect(total).toBeLessThan(75_000_000);
    const names = manifest.layers.flatMap((blob: Blob) => {
      expect(blob.mediaType).toEndWith(".tar+zstd");
      return run(["tar", "--zstd", "-tf", pathOfBlob(blob)]).split("\n");
    });
    for (const name of [loader, `lib/${triplet}/libc.so.6`, "etc/ssl/certs/ca-certificates.crt"])
      expect(names).toContain(name);
    for (const name of ["usr/share/zoneinfo/Europe/Berlin", "usr/local/bin/sluice"])
      expect(names).toContain(name);
  });

  test("is read by skopeo", () => {
    const { config } = imageOfOwn();
    const { Labels: labels, Architecture } = JSON.parse(
      run(["skopeo", "inspect", `oci:${layout}:${version}`]),
    );
    expect(Architecture).toBe(config.architecture);
    expect(labels["org.opencontainers.image.version"]).toBe(version);
    expect(labels["org.opencontainers.image.licenses"]).toBe("Apache-2.0");
  });

  test("is an archive for `docker load` of this machine as well", () => {
    const archive = join(scratch, "docker.tar");
    run(["tar", "-C", layout, "-cf", archive, "."]);
    const { config } = JSON.parse(
      run(["skopeo", "inspect", "--config", `docker-archive:${archive}:sluice:latest`]),
    );
    expect(config.User).toBe("65532:65532");
    rmSync(archive);
  });

  test("is the same when it is built again", () => {
    const [one = "", two = ""] = ["one", "two"].map((name) => {
      build(join(scratch, name), `--only ${other}`);
      return readFileSync(join(scratch, name, "index.json"), "utf8");
    });
    expect(two).toBe(one);
  });

  test("has a health check, a volume and a user without rights", () => {
    const { config } = imageOfOwn().config;
    expect(config).toMatchObject({
      User: "65532:65532",
      Entrypoint: ["/usr/local/bin/sluice"],
      Cmd: ["serve"],
      StopSignal: "SIGTERM",
      Volumes: { "/var/lib/sluice": {} },
      Healthcheck: { Test: ["CMD", "/usr/local/bin/sluice", "healthcheck"] },
    });
  });

  test("is refused without an executable", () => {
    expect(() => build(join(scratch, "none"), "--only s390x")).toThrow('no image for "s390x"');
    expect(() => build(join(scratch, "none"), `--from ${scratch}`)).toThrow("make release ARGS=");
  });
});

const imageOfOwn = () => imageOf(own === "x64" ? "amd64" : "arm64");

/**
 * What a container engine does: own mounts, network and processes, a read-only root, and the environment, the user and the words of the
 * image. Ports below 1024 are open to all users, as in compose.yaml.
 */
const CONTAINER = `set -e
ip link set lo up
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
mount --bind "$ROOT" "$ROOT"
mount --bind "$DATA" "$ROOT/var/lib/sluice"
mount --bind "$SECRETS" "$ROOT/run"
mount -t tmpfs -o mode=1777 none "$ROOT/tmp"
mount -t proc none "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -o remount,ro,bind "$ROOT"
mount -o remount,ro,bind "$ROOT/run"
exec chroot --userspec="$OWNER" "$ROOT" "$@"
`;

needs("executable", "skopeo", "mount", "private network").test(
  "serves from a read-only root, with the first admin of the password file",
  async () => {
    const root = join(scratch, "root");
    const { manifest, config } = imageOfOwn();
    mkdirSync(root);
    for (const layer of manifest.layers as Blob[])
      run(["tar", "--zstd", "--same-owner", "-xpf", pathOfBlob(layer), "-C", root]);
    const { User, Env, Entrypoint, Cmd } = config.config;
    const [user, group] = User.split(":").map(Number);
    const data = join(scratch, "data");
    const secrets = join(scratch, "secrets");
    for (const path of [data, secrets]) {
      mkdirSync(path, { mode: 0o700 });
      chownSync(path, user, group);
    }
    writeFileSync(join(secrets, "password"), `${PASSWORD}\n`);
    chownSync(join(secrets, "password"), user, group);
    const env = {
      ...Object.fromEntries(Env.map((text: string) => text.split(/=(.*)/s).slice(0, 2))),
      SLUICE_ADMIN_EMAIL: "ann@example.com",
      SLUICE_ADMIN_PASSWORD_FILE: "/run/password",
      SLUICE_WORKERS: "1",
    };
    const places = { ROOT: root, DATA: data, SECRETS: secrets, OWNER: User };
    const words = [pathOf("unshare") ?? "", "--mount", "--net", "--pid", "--fork"];
    const shell = [pathOf("bash") ?? "", "-c", `PATH=$TOOLS\n${CONTAINER}`, "bash"];
    const child = Bun.spawn([...words, ...shell, ...Entrypoint, ...Cmd], {
      env: { ...env, ...places, TOOLS: "/usr/sbin:/usr/bin:/sbin:/bin" },
      stdio: ["ignore", "ignore", "inherit"],
    });
    try {
      const inside = (...command: string[]) =>
        Bun.spawnSync(["nsenter", `--net=/proc/${child.pid}/ns/net`, ...command], {});
      const health = [join(root, Entrypoint[0]), "healthcheck", "--wait", "30"];
      await eventually(() => child.exitCode !== null || inside(...health).exitCode === 0);
      expect(child.exitCode).toBeNull();
      const curl = (...rest: string[]) =>
        inside(pathOf("curl") ?? "curl", "-s", ...rest).stdout.toString();
      const admin = "http://127.0.0.1:9080/api/v1";
      expect(curl(`${admin}/services`)).toContain("error");
      const body = JSON.stringify({ email: "ann@example.com", password: PASSWORD });
      const signedIn = curl(
        "-i",
        `${admin}/auth/login`,
        "-H",
        "content-type: application/json",
        "-d",
        body,
      );
      expect(signedIn).toStartWith("HTTP/1.1 200");
      expect(curl("-i", "http://127.0.0.1:80/")).toStartWith("HTTP/1.1 404");
      const owner = run(["stat", "-c", "%u %a", join(data, "sluice.db")]).trim();
      expect(owner).toBe("65532 600");
    } finally {
      // The end of unshare would not end the gateway.
      const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
      if (children !== "") process.kill(Number(children), "SIGTERM");
      expect(await child.exited).toBe(0);
    }
  },
  120_000,
);
