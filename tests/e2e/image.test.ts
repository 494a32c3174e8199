// The container image: its layout, and a container of it without an engine, in namespaces with a read-only root and a user without rights.
import { expect } from "bun:test";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { imageConfig } from "../../scripts/release/image-config.ts";
import { type Container, createChartRenderer } from "../support/helm/chart.ts";
import { needs, pathOf } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

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
 * image. Ports below 1024 are open to all users, as in compose.yaml. MOUNTS has lines of a directory, its place and `ro` or `rw`.
 */
const CONTAINER = `set -e
ip link set lo up
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
mount --bind "$ROOT" "$ROOT"
while read -r from to mode; do
  mkdir -p "$ROOT$to"
  mount --bind "$from" "$ROOT$to"
done <<<"$MOUNTS"
mount -t tmpfs -o mode=1777 none "$ROOT/tmp"
mount -t proc none "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -o remount,ro,bind "$ROOT"
while read -r from to mode; do
  if [ "$mode" = ro ]; then mount -o remount,ro,bind "$ROOT$to"; fi
done <<<"$MOUNTS"
exec chroot --userspec="$OWNER" "$ROOT" "$@"
`;

const anyRelease = {
  version,
  bunVersion: "1.0.0",
  commit: null,
  committedAt: "2026-01-01T00:00:00Z",
};

interface Mount {
  /** A directory of this machine; absent: a new volume. */
  readonly from?: string;
  /** In the container. */
  readonly to: string;
  /** Default: it can be written to. */
  readonly isReadOnly?: boolean;
}

interface ContainerOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of those of the image. */
  readonly command?: readonly string[];
  readonly mounts: readonly Mount[];
}

describe("a container", () => {
  const { beforeAll, test } = needs("executable", "skopeo", "mount", "private network");
  const root = join(scratch, "root");
  const secrets = join(scratch, "secrets");
  const { User, Env, Entrypoint, Cmd } = imageConfig(anyRelease).config;
  const [user = 0, group = 0] = User.split(":").map(Number);

  beforeAll(() => {
    mkdirSync(root);
    for (const layer of imageOfOwn().manifest.layers as Blob[])
      run(["tar", "--zstd", "--same-owner", "-xpf", pathOfBlob(layer), "-C", root]);
    mkdirSync(secrets, { mode: 0o700 });
    writeFileSync(join(secrets, "password"), `${PASSWORD}\n`);
    for (const path of [secrets, join(secrets, "password")]) chownSync(path, user, group);
  }, 60_000);

  /** A copy of the directory of the image with its owner, as Docker and Podman make it; root's where the image has none. */
  function newVolume(place: string): string {
    const volume = mkdtempSync(join(scratch, "volume-"));
    const inImage = join(root, place);
    if (existsSync(inImage)) run(["cp", "-aT", inImage, volume]);
    else chmodSync(volume, 0o755);
    return volume;
  }

  /** Runs until `use` has returned; the gateway must then end without an error. */
  async function inContainer<Result>(
    { env = {}, command = Cmd, mounts }: ContainerOptions,
    use: (container: {
      api: (path: string) => string;
      curl: (...words: string[]) => string;
    }) => Result,
  ): Promise<Result> {
    const all = [{ from: secrets, to: "/run", isReadOnly: true }, ...mounts];
    const lines = all.map(
      ({ from, to, isReadOnly = false }) =>
        `${from ?? newVolume(to)} ${to} ${isReadOnly ? "ro" : "rw"}`,
    );
    const words = [pathOf("unshare") ?? "", "--mount", "--net", "--pid", "--fork"];
    const shell = [pathOf("bash") ?? "", "-c", `PATH=$TOOLS\n${CONTAINER}`, "bash"];
    const child = Bun.spawn([...words, ...shell, ...Entrypoint, ...command], {
      env: {
        ...Object.fromEntries(Env.map((text) => text.split(/=(.*)/s).slice(0, 2))),
        SLUICE_ADMIN_EMAIL: "ann@example.com",
        SLUICE_ADMIN_PASSWORD_FILE: "/run/password",
        SLUICE_WORKERS: "1",
        ...env,
        ...{ ROOT: root, MOUNTS: lines.join("\n"), OWNER: User },
        TOOLS: "/usr/sbin:/usr/bin:/sbin:/bin",
      },
      stdio: ["ignore", "ignore", "inherit"],
    });
    try {
      const inside = (...words: string[]) =>
        Bun.spawnSync(["nsenter", `--net=/proc/${child.pid}/ns/net`, ...words], {});
      const health = [join(root, Entrypoint[0] ?? ""), "healthcheck", "--wait", "30"];
      await eventually(() => child.exitCode !== null || inside(...health).exitCode === 0);
      expect(child.exitCode).toBeNull();
      const curl = (...rest: string[]) =>
        inside(pathOf("curl") ?? "curl", "-sk", ...rest).stdout.toString();
      const admin = "http://127.0.0.1:9080/api/v1";
      expect(curl(`${admin}/services`)).toContain("error");
      const jar = join(scratch, `cookies-${child.pid}`);
      const email = env["SLUICE_ADMIN_EMAIL"] ?? "ann@example.com";
      const body = JSON.stringify({ email, password: PASSWORD });
      const json = ["-H", "content-type: application/json"];
      const signedIn = curl("-i", "-c", jar, `${admin}/auth/login`, ...json, "-d", body);
      expect(signedIn).toStartWith("HTTP/1.1 200");
      return use({ curl, api: (path) => curl("-b", jar, `${admin}${path}`) });
    } finally {
      // The end of unshare would not end the gateway.
      const path = `/proc/${child.pid}/task/${child.pid}/children`;
      const children = existsSync(path) ? readFileSync(path, "utf8") : "";
      if (children !== "") process.kill(Number(children), "SIGTERM");
      expect(await child.exited).toBe(0);
    }
  }

  test("serves from a read-only root, with the first admin of the password file", async () => {
    const data = newVolume("/var/lib/sluice");
    await inContainer({ mounts: [{ from: data, to: "/var/lib/sluice" }] }, ({ curl }) => {
      expect(curl("-i", "http://127.0.0.1:80/")).toStartWith("HTTP/1.1 404");
    });
    expect(run(["stat", "-c", "%u %a", data, join(data, "sluice.db")])).toBe(
      "65532 700\n65532 600\n",
    );
  }, 120_000);

  test("writes to a new volume at /data, too", async () => {
    const command = ["serve", "--data-dir", "/data"];
    await inContainer({ command, mounts: [{ to: "/data" }] }, () => undefined);
  }, 120_000);

  test("loads the plugins of examples/plugins", async () => {
    const from = join(scratch, "plugins");
    cpSync(join(checkout, "examples/plugins"), from, { recursive: true });
    const names = readdirSync(from).map((name) => name.replace(/\.ts$/, ""));
    await inContainer(
      {
        env: { SLUICE_PLUGINS_DIR: "/plugins" },
        mounts: [{ to: "/var/lib/sluice" }, { from, to: "/plugins", isReadOnly: true }],
      },
      ({ api }) => {
        const all = JSON.parse(api("/plugins/schemas")) as readonly { readonly name: string }[];
        expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining(names));
      },
    );
  }, 120_000);

  /** Variables without a value of the user's have their default. */
  const withDefaults = (env: Readonly<Record<string, string>> = {}) =>
    Object.fromEntries(
      Object.entries(env).map(([name, value]) => [
        name,
        value.replace(/\$\{\w+:-([^}]*)\}/g, "$1"),
      ]),
    );

  test.each(["scripts/packaging/compose.yaml", "examples/compose/discovery.yaml"])(
    "of %s serves each port that it publishes",
    async (file) => {
      interface Service {
        readonly ports: readonly string[];
        readonly command?: readonly string[];
        readonly volumes: readonly string[];
        readonly environment?: Readonly<Record<string, string>>;
        readonly sysctls: Readonly<Record<string, string>>;
      }
      const { services, volumes } = Bun.YAML.parse(readFileSync(join(checkout, file), "utf8")) as {
        services: { sluice: Service };
        volumes: object;
      };
      const { sluice } = services;
      // CONTAINER does so.
      expect(sluice.sysctls["net.ipv4.ip_unprivileged_port_start"]).toBe("0");
      const mounts = sluice.volumes.map((text) => {
        const [name = "", to = ""] = text.split(":");
        expect(Object.keys(volumes)).toContain(name);
        return { to };
      });
      const published = sluice.ports.filter((text) => !text.endsWith("/udp"));
      const inner = published.map((text) => Number(text.split(":").at(-1)));
      expect(inner).toContain(9080);
      const { command, environment } = sluice;
      await inContainer(
        {
          mounts,
          env: withDefaults(environment),
          ...(command === undefined ? {} : { command }),
        },
        ({ curl }) => {
          for (const port of inner)
            expect([
              port,
              curl(
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                `${port === 443 ? "https" : "http"}://127.0.0.1:${port}/`,
              ),
            ]).toEqual([port, port === 9080 ? "200" : "404"]);
        },
      );
    },
    120_000,
  );

  needs("executable", "skopeo", "mount", "private network", "go", "sprig").test(
    "of the Helm chart serves its ports, on a volume of root with the group of the pod",
    async () => {
      const objects = createChartRenderer(scratch)({});
      const pod = objects.find(({ kind }) => kind === "StatefulSet")?.spec.template.spec;
      const container = pod.containers[0] as Container;
      const { runAsUser, runAsGroup, fsGroup } = pod.securityContext;
      expect([runAsUser, runAsGroup]).toEqual([user, group]);
      const data = mkdtempSync(join(scratch, "volume-"));
      chownSync(data, 0, fsGroup);
      chmodSync(data, 0o2775);
      const mounts = container.volumeMounts
        .filter(({ name }) => name === "data")
        .map(({ mountPath: to }) => ({ from: data, to }));
      const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
      await inContainer({ env, mounts }, ({ curl }) => {
        expect(curl("-i", "http://127.0.0.1:8080/")).toStartWith("HTTP/1.1 404");
        expect(curl("-i", "https://127.0.0.1:8443/")).toContain(" 404");
      });
    },
    240_000,
  );
});

test("each file of examples and scripts/packaging is run by a test", () => {
  const runBy: Readonly<Record<string, string>> = {
    "examples/ansible/": "ansible.test.ts",
    "examples/compose/": "image.test.ts",
    "examples/monitoring/": "monitoring.test.ts",
    "examples/plugins/": "image.test.ts",
    "scripts/packaging/compose.yaml": "image.test.ts",
    "scripts/packaging/deb/": "packages.test.ts",
    "scripts/packaging/fail2ban/": "fail2ban.test.ts",
    "scripts/packaging/helm/": "image.test.ts",
  };
  /** Programs that they need are not in Debian, or several machines; a unit test reads those of a fleet. */
  const others = ["examples/terraform/main.tf", "scripts/packaging/fleet/"];
  const files = run(["git", "ls-files", "examples", "scripts/packaging"]).trim().split("\n");
  const known = [...Object.keys(runBy), ...others];
  expect(files.filter((file) => !known.some((path) => file.startsWith(path)))).toEqual([]);
  for (const name of Object.values(runBy))
    expect(existsSync(join(import.meta.dir, name))).toBe(true);
});
