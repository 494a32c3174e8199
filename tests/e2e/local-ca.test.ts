// The local CA with other programs: OpenSSL verifies what it signs, curl and Chromium trust it after `sluice trust`.
import { expect } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRoot, createSigned } from "../../src/crypto/x509.ts";
import { openBrowser } from "../support/browser.ts";
import { outputOf } from "../support/child-output.ts";
import { type Gateway, program, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const tools = ["executable", "certutil", "chromium", "curl", "update-ca-certificates"] as const;
const { afterAll, beforeAll, test } = needs(...tools, "private mounts");

let scratch: string;
let home: string;
let gateway: Gateway;
let origin: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "sluice-trust-"));
  home = join(scratch, "home");
  mkdirSync(home);
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("at home") });
  gateway = await startGateway({ binary: executable, workers: 2 });
  await gateway.ok("POST", "/api/v1/applications", {
    name: "nas",
    domains: ["nas.lan", "nas", "127.0.0.1"],
    https: { mode: "local_ca" },
    upstream: `http://127.0.0.1:${origin.port}`,
  });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
  rmSync(scratch, { recursive: true, force: true });
});

/** Runs a script whose changes of the system's store end with it: in mounts of its own. `env`: that of root itself. */
async function inOwnStore(
  script: string,
  env?: Record<string, string>,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const mounts = `set -e
    mount -t tmpfs none /usr/local/share/ca-certificates
    cp -a /etc/ssl/certs "${scratch}/certs"
    mount --bind "${scratch}/certs" /etc/ssl/certs
    set +e`;
  const user = env === undefined ? ["--map-root-user"] : [];
  const child = Bun.spawn(["unshare", ...user, "--mount", "sh", "-c", `${mounts}\n${script}`], {
    env: { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin`, HOME: home, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = await outputOf(child);
  rmSync(join(scratch, "certs"), { recursive: true, force: true });
  return output;
}

const sluice = program(executable).join(" ");
const visit = (host: string) =>
  `curl -sS --max-time 30 --connect-to ${host}:443:127.0.0.1:${gateway.httpsPort} https://${host}/`;

test("after `sluice trust`, curl trusts every site by the system's store, and no longer after `sluice untrust`", async () => {
  const { stdout } = await inOwnStore(`
    ${visit("nas.lan")} || echo refused
    ${sluice} trust --data-dir ${gateway.dataDir}
    for host in nas.lan nas 127.0.0.1; do
      curl -sS --max-time 30 --connect-to $host:443:127.0.0.1:${gateway.httpsPort} https://$host/; echo
    done
    ${visit("other.lan")} || echo refused
    ${sluice} untrust --url ${gateway.admin}
    ${visit("nas.lan")} || echo refused
    ${sluice} untrust --all
  `);
  const lines = stdout.split("\n");
  expect(lines[0]).toBe("refused");
  expect(lines[1]).toMatch(/^Sluice Local CA [0-9a-f]{8}, SHA-256 [0-9a-f]{64}$/);
  const path = /\/usr\/local\/share\/ca-certificates\/sluice-local-ca-[0-9a-f]{8}\.crt/;
  expect(lines[2]).toMatch(path);
  expect(lines[2]).toStartWith("done: system: ");
  expect(lines[3]).toBe(`done: browser: ${home}/.pki/nssdb; restart the browser`);
  expect(lines.slice(4, 8)).toEqual(["at home", "at home", "at home", "refused"]);
  expect(lines[8]).toStartWith("done: system: ");
  expect(lines[9]).toStartWith("done: browser: ");
  expect(lines[10]).toBe("refused");
  expect(lines.slice(11)).toEqual([
    "skipped: system: it was not there",
    `skipped: browser: ${home}/.pki/nssdb: it was not there`,
    "",
  ]);
});

test("after `sluice trust`, Chromium opens names and addresses without an error, and Firefox has the root", async () => {
  const profile = join(home, ".mozilla/firefox/abc.default");
  mkdirSync(profile, { recursive: true });
  Bun.spawnSync(["certutil", "-N", "-d", `sql:${profile}`, "--empty-password"]);
  const look = async () => {
    const args = ["--host-resolver-rules=MAP nas.lan 127.0.0.1"];
    const browser = await openBrowser({ home, args });
    try {
      const seen: string[] = [];
      for (const host of ["nas.lan", "127.0.0.1"]) {
        const page = await (await browser.newContext()).newPage();
        await page.goto(`https://${host}:${gateway.httpsPort}/`).then(
          async () => seen.push((await page.textContent("body")) ?? ""),
          (error: Error) => seen.push(/ERR_\w+/.exec(error.message)?.[0] ?? error.message),
        );
      }
      return seen;
    } finally {
      await browser.close();
    }
  };
  expect(await look()).toEqual(["ERR_CERT_AUTHORITY_INVALID", "ERR_CERT_AUTHORITY_INVALID"]);
  const { code, stdout } = await inOwnStore(`${sluice} trust --data-dir ${gateway.dataDir}`);
  expect(code).toBe(0);
  expect(stdout).toContain(`done: browser: ${profile}; restart the browser`);
  expect(await look()).toEqual(["at home", "at home"]);
  const list = Bun.spawnSync(["certutil", "-L", "-d", `sql:${profile}`]).stdout.toString();
  expect(list).toMatch(/Sluice Local CA [0-9a-f]{8}\s+C,,/);
  await inOwnStore(`${sluice} untrust --all`);
  expect(await look()).toEqual(["ERR_CERT_AUTHORITY_INVALID", "ERR_CERT_AUTHORITY_INVALID"]);
});

test("`sluice trust` accepts no root over plain HTTP from another machine, and no other certificate", async () => {
  const other = await createSigned(
    { names: ["x.lan"], addresses: [], now: Date.now(), validDays: 9 },
    await createRoot({ commonName: "Evil", constraints: null, now: Date.now(), validDays: 9 }),
  );
  using liar = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(other.cert) });
  const { stderr, stdout } = await inOwnStore(`
    ${sluice} trust --url http://192.0.2.1:9080
    ${sluice} trust --url http://127.0.0.1:${liar.port}
    ${sluice} trust --url ${gateway.admin} --fingerprint 00
    ls /usr/local/share/ca-certificates
  `);
  expect(stdout).toBe("");
  expect(stderr).toContain("--fingerprint: is required for http:// to another machine");
  expect(stderr).toContain("the certificate is no root of a local CA of Sluice");
  expect(stderr).toContain(", not 00");
});

needs(...tools, "mount").test(
  "under sudo, the databases of the user are changed with the rights of the user",
  async () => {
    const users = join(scratch, "passwd");
    const own = join(scratch, "sam");
    const profile = join(own, ".mozilla/firefox/abc.default");
    mkdirSync(profile, { recursive: true });
    Bun.spawnSync(["certutil", "-N", "-d", `sql:${profile}`, "--empty-password"]);
    writeFileSync(users, `root:x:0:0::/root:/bin/sh\nsam:x:54321:54321::${own}:/bin/sh\n`);
    const { stdout } = await inOwnStore(
      `mount --bind ${users} /etc/passwd
      chmod 711 ${scratch}
      ${sluice} trust --url ${gateway.admin}
      chown -R 54321:54321 ${own}
      ${sluice} trust --url ${gateway.admin}
      ls -ln ${profile}/cert9.db`,
      { SUDO_USER: "sam" },
    );
    expect(stdout).toContain(`failed: browser: ${profile}: certutil failed`);
    expect(stdout).toContain(`done: browser: ${profile}; restart the browser`);
    expect(stdout).toMatch(/ 54321 +54321 .*cert9\.db/);
  },
);

needs("openssl").test(
  "OpenSSL verifies names and addresses, and obeys name constraints",
  async () => {
    const constraints = { names: ["lan"], networks: ["192.168.0.0/16", "fd00::/8"] };
    const signer = await createRoot({
      commonName: "Sluice Local CA 00000000",
      constraints,
      now: Date.now(),
      validDays: 3650,
    });
    const directory = mkdtempSync(join(tmpdir(), "sluice-verify-"));
    const root = join(directory, "root.pem");
    writeFileSync(root, signer.cert);
    const verify = async (names: readonly string[], addresses: readonly string[]) => {
      const content = { names, addresses, now: Date.now(), validDays: 90 };
      const leaf = join(directory, "leaf.pem");
      writeFileSync(leaf, (await createSigned(content, signer)).cert);
      const hosts = names.flatMap((name) => ["-verify_hostname", name.replace("*", "x")]);
      const ips = addresses.flatMap((address) => ["-verify_ip", address]);
      const checks = ["-x509_strict", "-purpose", "sslserver", "-CAfile", root];
      const { exitCode, stderr } = Bun.spawnSync([
        "openssl",
        "verify",
        ...checks,
        ...hosts.slice(0, 2),
        ...ips.slice(0, 2),
        leaf,
      ]);
      return exitCode === 0 ? "ok" : (/error \d+ at .*: (.*)/.exec(stderr.toString())?.[1] ?? "");
    };
    expect(await verify(["nas.lan", "*.nas.lan"], ["192.168.1.5", "fd00::1"])).toBe("ok");
    expect(await verify(["*.nas.lan"], [])).toBe("ok");
    expect(await verify([], ["192.168.1.5"])).toBe("ok");
    expect(await verify([], ["fd00::1"])).toBe("ok");
    expect(await verify(["nas.lan", "bank.example.com"], [])).toBe("permitted subtree violation");
    expect(await verify(["nas"], [])).toBe("permitted subtree violation");
    expect(await verify(["nas.lan"], ["203.0.113.7"])).toBe("permitted subtree violation");
    expect(await verify([], ["2001:db8::1"])).toBe("permitted subtree violation");
    rmSync(directory, { recursive: true, force: true });
  },
);
